// Messages that are over, so that a packet that comes again does not begin them anew (docs/nic.md,
// rules 16 and 18; C9). A table of sets with up to four ways, which are replaced in turn.
//
// `found_o` is about the key of the cycle before, and knows what has been inserted until then,
// although what is inserted is written a cycle later. A key that is inserted is not in the table:
// its message has just been alive, and a message that is found here does not begin. So C9's rule
// that no key stands here twice needs no search.
module remembered #(
  // Places, a power of two.
  parameter int unsigned Places = 1024
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  // {src_ip, src_context, tx_msg_id}
  input  logic [63:0] find_key_i,
  output logic        found_o,
  input  logic        insert_i,
  input  logic [63:0] insert_key_i
);

  if (Places > 262144 || 2 ** $clog2(Places) != Places) begin : gen_refused
    $error("Places has to be a power of two up to 2^18: the hash has 16 bits");
  end

  localparam int unsigned Ways = Places < 4 ? Places : 4;
  localparam int unsigned Sets = Places / Ways;
  localparam int unsigned WayW = Ways > 1 ? $clog2(Ways) : 1;
  localparam int unsigned SetW = Sets > 1 ? $clog2(Sets) : 1;
  typedef logic [SetW-1:0] set_t;
  typedef logic [WayW-1:0] way_t;

  function automatic set_t set_of(logic [63:0] key);
    logic [15:0] hash;
    // Both halves of the address, the context turned left by 5, the number by 11.
    hash = key[63:48] ^ key[47:32] ^ {key[26:16], key[31:27]} ^ {key[4:0], key[15:5]};
    return set_t'((hash ^ (hash >> 8)) & 16'(Sets - 1));
  endfunction

  logic [63:0] keys_q [Sets*Ways];
  // The way of each set that is filled next, and whether all have been filled once: zeros in a set
  // in which nothing is yet, so that the memory needs no reset.
  typedef struct packed {
    logic full;
    way_t next;
  } fill_t;
  fill_t           fill_q [Sets];
  logic [Sets-1:0] begun_q;

  function automatic fill_t fill_of(set_t set);
    return begun_q[set] ? fill_q[set] : '0;
  endfunction

  // What is inserted.
  logic        insert_q;
  logic [63:0] insert_key_q;
  set_t        insert_set_q;
  fill_t       old, fresh;
  assign old        = fill_of(insert_set_q);
  assign fresh.full = old.full || old.next == way_t'(Ways - 1);
  assign fresh.next = old.next == way_t'(Ways - 1) ? '0 : old.next + way_t'(1);

  // What is looked for.
  set_t            find_set, find_set_q;
  fill_t           find_fill;
  logic [63:0]     find_key_q;
  logic [63:0]     read_q [Ways];
  logic [Ways-1:0] valid_q, same;
  assign find_set  = set_of(find_key_i);
  assign find_fill = fill_of(find_set);

  // A way is read as it is with what is written in the cycle of the read; what is written in the
  // cycle after has come in the cycle of the read.
  logic [Ways-1:0] writes, filled, replaced;
  logic            same_inserted;
  always_comb begin
    same_inserted = insert_q && insert_key_q == find_key_q;
    for (int unsigned w = 0; w < Ways; w++) begin
      writes[w]   = insert_q && old.next == way_t'(w);
      filled[w]   = writes[w] && insert_set_q == find_set;
      replaced[w] = writes[w] && insert_set_q == find_set_q;
      same[w]     = valid_q[w] && !replaced[w] && read_q[w] == find_key_q;
    end
  end
  assign found_o = same != '0 || same_inserted;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q  <= '0;
      valid_q  <= '0;
      insert_q <= 1'b0;
    end else begin
      insert_q <= insert_i;
      if (insert_q) begun_q[insert_set_q] <= 1'b1;
      for (int unsigned w = 0; w < Ways; w++) begin
        valid_q[w] <= filled[w] || find_fill.full || way_t'(w) < find_fill.next;
      end
    end
  end

  function automatic int unsigned place(set_t set, int unsigned way);
    return Ways * 32'(set) + way;
  endfunction

  always_ff @(posedge clk_i) begin
    insert_key_q <= insert_key_i;
    insert_set_q <= set_of(insert_key_i);
    find_key_q   <= find_key_i;
    find_set_q   <= find_set;
    for (int unsigned w = 0; w < Ways; w++) begin
      read_q[w] <= filled[w] ? insert_key_q : keys_q[place(find_set, w)];
    end
    if (insert_q) begin
      keys_q[place(insert_set_q, 32'(old.next))] <= insert_key_q;
      fill_q[insert_set_q] <= fresh;
    end
  end

endmodule
