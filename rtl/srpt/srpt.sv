// The priority scheduler: which message is granted next (docs/nic.md, rule 28; C6;
// specs/nanotransport.md, section 9).
//
// Sixteen entries are in registers and compared at once. What finds no register waits in a queue
// until one is free, and is kept up to date there, but never chosen and never counted. In a cycle
// the request comes first, then what the ids that are free have left behind. The answer comes two
// cycles after the request.
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

  localparam int unsigned Registers = 16;
  // Each message has one entry.
  localparam int unsigned Waiting = Ids > Registers ? Ids - Registers : 1;
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

  // The message has no entry; what has waited longest gets its register.
  function automatic state_t without(state_t state, id_t id);
    logic [Registers-1:0] held;
    logic [Waiting-1:0]   leaves;
    logic                 gone;
    gone    = 1'b0;
    without = state;
    for (int unsigned r = 0; r < Registers; r++) begin
      held[r] = state.valid[r] && state.registers[r].id == id;
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
    without.count = state.count - CountW'(gone);
  endfunction

  // The message has this entry.
  function automatic state_t with_entry(state_t state, entry_t entry);
    logic [Registers-1:0] held;
    logic [Waiting-1:0]   kept;
    logic                 placed;
    for (int unsigned r = 0; r < Registers; r++) begin
      held[r] = state.valid[r] && state.registers[r].id == entry.id;
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
    with_entry.count = state.count + CountW'(!placed);
  endfunction

  state_t state_q, asked, chosen, dropped, state_d;

  entry_t request;
  assign request = '{rank: rank_i, id: rx_msg_id_i[IdW-1:0], granted: granted_i,
                     grantable: grantable_i};
  assign asked = !valid_i ? state_q
                          : (remove_i ? without(state_q, request.id)
                                      : with_entry(state_q, request));

  // The best entry with something to grant. Entries that have nothing count as better all the same:
  // their packets are in flight.
  logic                 any, success;
  logic [15:0]          best_rank, best_grantable;
  id_t                  best_id;
  logic [Registers-1:0] better, is_best;
  logic [4:0]           level;
  always_comb begin
    any            = 1'b0;
    best_rank      = '0;
    best_id        = '0;
    best_grantable = '0;
    is_best        = '0;
    for (int unsigned r = 0; r < Registers; r++) begin
      if (asked.valid[r] && asked.registers[r].grantable > asked.registers[r].granted
          && (!any || {asked.registers[r].rank, asked.registers[r].id} < {best_rank, best_id}))
      begin
        any            = 1'b1;
        best_rank      = asked.registers[r].rank;
        best_id        = asked.registers[r].id;
        best_grantable = asked.registers[r].grantable;
        is_best        = Registers'(1) << r;
      end
    end
  end
  always_comb begin
    level = '0;
    for (int unsigned r = 0; r < Registers; r++) begin
      better[r] = asked.valid[r]
                  && {asked.registers[r].rank, asked.registers[r].id} < {best_rank, best_id};
      level += 5'(better[r]);
    end
  end
  assign success = valid_i && any && 32'(level) < Overcommitment;

  always_comb begin
    chosen = asked;
    for (int unsigned r = 0; r < Registers; r++) begin
      if (success && is_best[r]) chosen.registers[r].granted = best_grantable;
    end
  end

  assign dropped = drop_valid_i[0] ? without(chosen, drop0_id_i) : chosen;
  assign state_d = drop_valid_i[1] ? without(dropped, drop1_id_i) : dropped;

  typedef struct packed {
    logic        success;
    logic [4:0]  level;
    id_t         id;
    logic [15:0] offset;
  } answer_t;
  answer_t answer, answer_q, answer_qq;
  assign answer = success ? '{success: 1'b1, level: level, id: best_id, offset: best_grantable}
                          : '0;

  logic busy_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= '0;
      answer_q  <= '0;
      answer_qq <= '0;
      busy_q    <= 1'b0;
    end else begin
      state_q   <= state_d;
      answer_q  <= answer;
      answer_qq <= answer_q;
      busy_q    <= valid_i;
      two_cycles_apart: assert (!(valid_i && busy_q));
      a_message: assert (!valid_i || 32'(rx_msg_id_i) < Ids);
      none_waits_beside_a_free_register: assert (state_q.count == '0 || state_q.valid == '1);
    end
  end

  assign success_o      = answer_qq.success;
  assign prio_level_o   = 8'(answer_qq.level);
  assign rx_msg_id_o    = 16'(answer_qq.id);
  assign grant_offset_o = answer_qq.offset;

endmodule
