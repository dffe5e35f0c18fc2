// What the blocks of the NIC share: formats, and the arithmetic of packets of a message.
package nano_pkg;

  // Packets that a message may have: 65535 bytes, 1024 in each.
  localparam int unsigned PacketsMax = 64;

  // Bit i: packet i of a message.
  typedef logic [PacketsMax-1:0] bitmap_t;

  // How many packets: 0 to 64.
  typedef logic [6:0] packets_t;

  // `egress_metadata_t` of nano.p4 without its notes: a packet that the egress pipeline is to make.
  typedef struct packed {
    logic [7:0]  protocol;
    logic [31:0] dst_ip;
    logic [15:0] dst_context;
    logic [15:0] msg_len;
    logic [7:0]  pkt_offset;
    logic [15:0] src_context;
    logic [15:0] tx_msg_id;
    logic [15:0] buf_ptr;
    logic [7:0]  size_class;
    logic [15:0] credit;
    logic [7:0]  rank;
    logic [7:0]  flags;
    logic        is_new_msg;
    logic        is_rtx;
  } egress_meta_t;

  // Packets of a message of so many bytes; one of no bytes has one (docs/nic.md, rule 5).
  function automatic packets_t packets(logic [15:0] msg_len);
    return packets_t'({1'b0, msg_len[15:10]}) + packets_t'(msg_len[9:0] != '0 || msg_len == '0);
  endfunction

  // The packets below `last`.
  function automatic bitmap_t below(packets_t last);
    for (int unsigned i = 0; i < PacketsMax; i++) below[i] = packets_t'(i) < last;
  endfunction

  // The packet of this index; none beyond the largest message.
  function automatic bitmap_t packet(logic [7:0] index);
    for (int unsigned i = 0; i < PacketsMax; i++) packet[i] = index == 8'(i);
  endfunction

  // The first packet of a set. Spans of one, two, four ... packets are looked through at once.
  function automatic bitmap_t lowest(bitmap_t set);
    bitmap_t behind;
    behind = set << 1;
    for (int unsigned span = 1; span < PacketsMax; span *= 2) behind |= behind << span;
    return set & ~behind;
  endfunction

  // Whether a set has more than one packet: spans of one, two, four ... packets that have any, and
  // more than one.
  function automatic logic has_more(bitmap_t set);
    bitmap_t any, more;
    any  = set;
    more = '0;
    for (int unsigned span = 1; span < PacketsMax; span *= 2) begin
      more |= (more >> span) | (any & (any >> span));
      any  |= any >> span;
    end
    return more[0];
  endfunction

  // The index of the first packet of a set; 63 for none. Halves are looked at one after another.
  function automatic logic [5:0] first_of(bitmap_t set);
    logic [63:0] rest;
    rest = set;
    for (int unsigned level = 6; level > 0; level--) begin
      first_of[level-1] = (rest & ((64'd1 << (1 << (level - 1))) - 64'd1)) == '0;
      if (first_of[level-1]) rest = rest >> (1 << (level - 1));
    end
  endfunction

  // The index of the only packet of a set; 0 for none.
  function automatic logic [5:0] index_of(bitmap_t one);
    index_of = '0;
    for (int unsigned i = 0; i < PacketsMax; i++) begin
      if (one[i]) index_of |= 6'(i);
    end
  endfunction

endpackage
