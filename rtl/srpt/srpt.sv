// The priority scheduler: which message is granted next (docs/nic.md, rule 28; C6;
// specs/nanotransport.md, section 9).
//
// Sixteen entries are in registers and compared at once. What finds no register waits in a queue
// until one is free, and is kept up to date there, but never chosen and never counted. Of a cycle
// the request comes first, then what the ids that are free have left behind. The answer comes two
// cycles after the request.
//
// What is granted is chosen in the cycle after the request. What ids leave behind is held back by a
// cycle, so that it stays between the same two requests.
module srpt #(
  // Messages, a power of two from 2 to 128.
  parameter int unsigned Ids = 16,
  // A message that so many entries are better than is not granted.
  parameter int unsigned Overcommitment = 3,
  localparam int unsigned IdW = $clog2(Ids)
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  // The message of the packet: its entry is set to what follows, or removed.
  input  logic           valid_i,
  input  logic [15:0]    rx_msg_id_i,
  input  logic           remove_i,
  input  logic [15:0]    rank_i,
  input  logic [15:0]    granted_i,
  input  logic [15:0]    grantable_i,
  // Ids that are free: they have no entry from now on.
  input  logic [1:0]     drop_valid_i,
  input  logic [IdW-1:0] drop0_id_i,
  input  logic [IdW-1:0] drop1_id_i,
  // The message to grant. Zero if there is none.
  output logic           success_o,
  output logic [7:0]     prio_level_o,
  output logic [15:0]    rx_msg_id_o,
  output logic [15:0]    grant_offset_o
);

  if (Ids < 2 || Ids > 128 || 2 ** $clog2(Ids) != Ids) begin : gen_refused
    $error("Ids has to be a power of two from 2 to 128");
  end

  localparam int unsigned Compared = 16;
  localparam int unsigned Registers = Ids < Compared ? Ids : Compared;
  // Each message has one entry. Where there is a register for each, it has that of its id.
  localparam bit Waits = Ids > Registers;
  localparam int unsigned Waiting = Waits ? Ids - Registers : 1;
  localparam int unsigned CountW = $clog2(Waiting + 1);

  typedef logic [IdW-1:0] id_t;
  typedef struct packed {
    // Smaller is better; equal ones by id.
    logic [15:0] rank;
    id_t         id;
    logic [15:0] granted;
    logic [15:0] grantable;
  } entry_t;

  typedef struct packed {
    logic [Registers-1:0]   valid;
    entry_t [Registers-1:0] registers;
    entry_t [Waiting-1:0]   waiting;
    logic [CountW-1:0]      count;
  } state_t;

  // Which message a register is of, if of any, from its number and what its entry says.
  function automatic id_t id_of(id_t number, id_t id);
    return Waits ? id : number;
  endfunction

  // The message has no entry; what has waited longest gets its register.
  function automatic state_t without(state_t state, id_t id);
    logic [Registers-1:0] held;
    logic [Waiting-1:0]   leaves;
    logic                 gone;
    gone    = 1'b0;
    without = state;
    for (int unsigned r = 0; r < Registers; r++) begin
      held[r] = id_of(id_t'(r), state.registers[r].id) == id && (!Waits || state.valid[r]);
    end
    for (int unsigned i = 0; i < Waiting; i++) begin
      leaves[i] = CountW'(i) < state.count
                  && (held != '0 ? i == 0 : state.waiting[i].id == id);
    end
    for (int unsigned r = 0; r < Registers; r++) begin
      if (held[r]) begin
        without.valid[r]     = state.count != '0;
        without.registers[r] = state.waiting[0];
      end
    end
    for (int unsigned i = 0; i < Waiting; i++) begin
      gone |= leaves[i];
      if (gone && i + 1 < Waiting) without.waiting[i] = state.waiting[i+1];
    end
    if (Waits) without.count = state.count - CountW'(gone);
  endfunction

  // The message has this entry.
  function automatic state_t with_entry(state_t state, entry_t entry);
    logic [Registers-1:0] held;
    logic [Waiting-1:0]   kept;
    logic                 placed;
    for (int unsigned r = 0; r < Registers; r++) begin
      held[r] = id_of(id_t'(r), state.registers[r].id) == entry.id && (!Waits || state.valid[r]);
    end
    for (int unsigned i = 0; i < Waiting; i++) begin
      kept[i] = CountW'(i) < state.count && state.waiting[i].id == entry.id;
    end
    placed     = held != '0 || kept != '0;
    with_entry = state;
    for (int unsigned r = 0; r < Registers; r++) begin
      if (held[r] || (!placed && !state.valid[r])) begin
        with_entry.valid[r]     = 1'b1;
        with_entry.registers[r] = entry;
        placed                  = 1'b1;
      end
    end
    for (int unsigned i = 0; i < Waiting; i++) begin
      if (kept[i] || (!placed && CountW'(i) == state.count)) with_entry.waiting[i] = entry;
    end
    if (Waits) with_entry.count = state.count + CountW'(!placed);
  endfunction

  state_t     state_q, granted, dropped, left, state_d;
  logic       busy_q;
  logic [1:0] drop_valid_q;
  id_t [1:0]  drop_ids_q;

  // ---- The best entry with something to grant. Entries that have nothing count as better all the
  // same: their packets are in flight. Each register finds out for itself whether it is the one.
  typedef logic [Registers-1:0] registers_t;
  // ahead[r][s]: the entry in s is better than that in r.
  registers_t [Registers-1:0] ahead;
  registers_t                 wants, is_best, grants;
  logic [Registers-1:0][4:0]  levels;
  always_comb begin
    for (int unsigned r = 0; r < Registers; r++) begin
      ahead[r][r] = 1'b0;
      for (int unsigned s = 0; s < r; s++) begin
        ahead[r][s] = {state_q.registers[s].rank, id_of(id_t'(s), state_q.registers[s].id)}
                      < {state_q.registers[r].rank, id_of(id_t'(r), state_q.registers[r].id)};
        ahead[s][r] = !ahead[r][s];
      end
      wants[r] = state_q.valid[r] && state_q.registers[r].grantable > state_q.registers[r].granted;
    end
    for (int unsigned r = 0; r < Registers; r++) begin
      is_best[r] = wants[r] && (ahead[r] & wants) == '0;
      levels[r]  = 5'($countones(ahead[r] & state_q.valid));
      grants[r]  = busy_q && is_best[r] && 32'(levels[r]) < Overcommitment;
    end
  end

  typedef struct packed {
    logic        success;
    logic [4:0]  level;
    id_t         id;
    logic [15:0] offset;
  } answer_t;
  answer_t answer, answer_q;
  always_comb begin
    answer  = '0;
    granted = state_q;
    for (int unsigned r = 0; r < Registers; r++) begin
      if (grants[r]) begin
        answer.success |= 1'b1;
        answer.level   |= levels[r];
        answer.id      |= id_of(id_t'(r), state_q.registers[r].id);
        answer.offset  |= state_q.registers[r].grantable;
        granted.registers[r].granted = state_q.registers[r].grantable;
      end
    end
  end

  // ---- What the cycle before has left behind, then the request.
  entry_t request;
  assign request = '{rank: rank_i, id: rx_msg_id_i[IdW-1:0], granted: granted_i,
                     grantable: grantable_i};
  assign dropped = drop_valid_q[0] ? without(granted, drop_ids_q[0]) : granted;
  assign left    = drop_valid_q[1] ? without(dropped, drop_ids_q[1]) : dropped;
  always_comb begin
    state_d = left;
    if (valid_i) state_d = remove_i ? without(left, request.id) : with_entry(left, request);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= '0;
      answer_q     <= '0;
      busy_q       <= 1'b0;
      drop_valid_q <= '0;
      drop_ids_q   <= '0;
    end else begin
      state_q      <= state_d;
      answer_q     <= answer;
      busy_q       <= valid_i;
      drop_valid_q <= drop_valid_i;
      drop_ids_q   <= {drop1_id_i, drop0_id_i};
      two_cycles_apart: assert (!(valid_i && busy_q));
      a_message: assert (!valid_i || 32'(rx_msg_id_i) < Ids);
      none_waits_beside_a_free_register: assert (state_q.count == '0 || state_q.valid == '1);
    end
  end

  assign success_o      = answer_q.success;
  assign prio_level_o   = 8'(answer_q.level);
  assign rx_msg_id_o    = 16'(answer_q.id);
  assign grant_offset_o = answer_q.offset;

endmodule
