// Messages that are over, so that a packet that comes again does not begin them anew (docs/nic.md,
// rules 16 and 18; C9). A table of sets with up to four ways, which are replaced in turn.
//
// `found_o` is about the key of the cycle before, and knows what has been inserted until then. A
// key that is inserted is not in the table: its message has just been alive, and a message that is
// found here does not begin. So C9's rule that no key stands here twice needs no search.
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
  // The way of each set that is filled next, and whether all have been filled once.
  way_t            next_q [Sets];
  logic [Sets-1:0] full_q;

  set_t            find_set, insert_set;
  way_t            insert_way;
  logic            last_way;
  logic [63:0]     find_key_q;
  logic [63:0]     read_q [Ways];
  logic [Ways-1:0] valid, valid_q, same;

  assign find_set   = set_of(find_key_i);
  assign insert_set = set_of(insert_key_i);
  assign insert_way = next_q[insert_set];
  assign last_way   = insert_way == way_t'(Ways - 1);

  // The way that is being filled is read as it will be.
  logic [Ways-1:0] filled;
  always_comb begin
    for (int unsigned w = 0; w < Ways; w++) begin
      filled[w] = insert_i && insert_set == find_set && insert_way == way_t'(w);
      valid[w]  = filled[w] || full_q[find_set] || way_t'(w) < next_q[find_set];
      same[w]   = valid_q[w] && read_q[w] == find_key_q;
    end
  end
  assign found_o = same != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      full_q  <= '0;
      valid_q <= '0;
      for (int unsigned s = 0; s < Sets; s++) next_q[s] <= '0;
    end else begin
      valid_q <= valid;
      if (insert_i) begin
        next_q[insert_set] <= last_way ? '0 : insert_way + way_t'(1);
        full_q[insert_set] <= full_q[insert_set] || last_way;
      end
    end
  end

  function automatic int unsigned place(set_t set, int unsigned way);
    return Ways * 32'(set) + way;
  endfunction

  always_ff @(posedge clk_i) begin
    find_key_q <= find_key_i;
    for (int unsigned w = 0; w < Ways; w++) begin
      read_q[w] <= filled[w] ? insert_key_i : keys_q[place(find_set, w)];
    end
    if (insert_i) keys_q[place(insert_set, 32'(insert_way))] <= insert_key_i;
  end

endmodule
