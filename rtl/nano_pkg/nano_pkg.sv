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
    return last >= packets_t'(PacketsMax) ? '1 : (bitmap_t'(1) << last) - bitmap_t'(1);
  endfunction

  // The packet of this index; none beyond the largest message.
  function automatic bitmap_t packet(logic [7:0] index);
    return index < 8'(PacketsMax) ? bitmap_t'(1) << index[5:0] : '0;
  endfunction

  // The first packet of a set.
  function automatic bitmap_t lowest(bitmap_t set);
    return set & (~set + bitmap_t'(1));
  endfunction

  // The index of the only packet of a set; 0 for none.
  function automatic logic [5:0] index_of(bitmap_t one);
    index_of = '0;
    for (int unsigned i = 0; i < PacketsMax; i++) begin
      if (one[i]) index_of |= 6'(i);
    end
  endfunction

endpackage
