-- Trimline's headers in Wireshark and tshark: tshark -X lua_script:trimline.lua -r packets.pcapng
--
-- Decoded are NDP, Homa, pHost, pFabric, Ultra Ethernet, RoCE, the two headers of nanoTransport, constant-bit-rate
-- sources, and the shim that real hosts put between UDP and a transport's header. TCP is
-- Wireshark's own. So would RoCE be, but for payload that captures do not hold: it takes such
-- packets for malformed. The layouts are those of crates/wire/src, file by file, where their
-- sources are named. All integers are big-endian.

local PREFIX = "trimline."

-- A field: what a filter calls it, what a reader sees, and where it stands. `show` is how its
-- value is written: "dec", "hex", or a table of words.
local function field(filter, label, offset, bytes, show)
  return { filter = filter, label = label, offset = offset, bytes = bytes, show = show or "dec" }
end

-- One bit of a field of flags.
local function flag(filter, label, offset, bytes, mask)
  return { filter = filter, label = label, offset = offset, bytes = bytes, mask = mask }
end

-- Wireshark has no number of six bytes; it shows them in eight.
local MAKERS = {
  [1] = ProtoField.uint8, [2] = ProtoField.uint16, [3] = ProtoField.uint24,
  [4] = ProtoField.uint32, [6] = ProtoField.uint64, [8] = ProtoField.uint64,
}

local function proto_field(prefix, f)
  local name = prefix .. "." .. f.filter
  if f.mask then
    return ProtoField.bool(name, f.label, 8 * f.bytes, nil, f.mask)
  end
  local words = type(f.show) == "table" and f.show or nil
  local radix = f.show == "hex" and base.HEX or base.DEC
  return MAKERS[f.bytes](name, f.label, radix, words)
end

-- A protocol called `name`, with the fields of `kinds`: a table of lists. `fields_of(bytes)` says
-- which lists a header of this kind has, what to call it, and its length if that is not `len`.
-- Returns the protocol and the function that dissects it.
local function protocol(name, title, len, kinds, fields_of)
  local proto = Proto(PREFIX .. name, title)
  local registered, by_filter = {}, {}
  for _, list in pairs(kinds) do
    for _, f in ipairs(list) do
      -- A field that stands in several kinds of header is one to a filter.
      by_filter[f.filter] = by_filter[f.filter] or proto_field(PREFIX .. name, f)
      registered[f.filter] = by_filter[f.filter]
    end
  end
  local fields = {}
  for _, f in pairs(registered) do
    fields[#fields + 1] = f
  end
  proto.fields = fields
  local short = ProtoExpert.new(PREFIX .. name .. ".short", "Cut off",
    expert.group.MALFORMED, expert.severity.ERROR)
  proto.experts = { short }

  local function dissect(bytes, packet, tree)
    packet.cols.protocol = title
    local lists, what, used = fields_of(bytes)
    used = used or len
    local item = tree:add(proto, bytes(0, math.min(used, bytes:len())))
    if bytes:len() < used then
      item:add_proto_expert_info(short)
      return bytes:len()
    end
    for _, list in ipairs(lists) do
      for _, f in ipairs(list) do
        item:add(registered[f.filter], bytes(f.offset, f.bytes))
      end
    end
    packet.cols.info = what
    item:append_text(", " .. what)
    if bytes:reported_length_remaining() > used and bytes:len() > used then
      Dissector.get("data"):call(bytes(used):tvb(), packet, tree)
    end
    return bytes:len()
  end
  proto.dissector = dissect
  return proto, dissect
end

-- The byte or word at `offset`, 0 where the bytes end before.
local function number(bytes, offset, length)
  return bytes:len() >= offset + length and bytes(offset, length):uint() or 0
end

-- Whether a bit of flags is set; operators for it came with Lua 5.3, and Wireshark 4.0 has 5.2.
local function has(flags, mask)
  return math.floor(flags / mask) % 2 == 1
end

local function wide(bytes, offset)
  return bytes:len() >= offset + 8 and bytes(offset, 8):uint64():tonumber() or 0
end

local by_number = DissectorTable.get("ip.proto")
-- What the shim finds a transport by: the same numbers.
local transports = { [6] = Dissector.get("tcp") }

local function register(number_of, proto)
  by_number:add(number_of, proto)
  transports[number_of] = proto.dissector
end

-- NDP (crates/wire/src/ndp.rs).
do
  local DATA, ACK, PULL, NACK, KEEPALIVE = 0x01, 0x02, 0x04, 0x08, 0x10
  local CHOPPED, RTX = 0x80, 0x200
  local kinds = {
    all = {
      field("flags", "Flags", 0, 2, "hex"),
      flag("flags.data", "DATA", 0, 2, DATA),
      flag("flags.ack", "ACK", 0, 2, ACK),
      flag("flags.pull", "PULL", 0, 2, PULL),
      flag("flags.nack", "NACK", 0, 2, NACK),
      flag("flags.keepalive", "KEEPALIVE", 0, 2, KEEPALIVE),
      flag("flags.pacer_valid", "PACER_VALID", 0, 2, 0x20),
      flag("flags.fin", "FIN", 0, 2, 0x40),
      flag("flags.chopped", "CHOPPED", 0, 2, CHOPPED),
      flag("flags.syn", "SYN", 0, 2, 0x100),
      flag("flags.rtx", "RTX", 0, 2, RTX),
      field("checksum", "Checksum", 2, 2, "hex"),
      field("connection", "Connection", 4, 8),
    },
    data = {
      field("seq", "Sequence number", 12, 4),
      field("pacer_echo", "Pacer echo", 16, 4),
      field("priority", "Priority", 20, 1),
      field("payload_len", "Payload length before trimming", 22, 2),
    },
    ack = {
      field("seq", "Sequence number", 12, 4),
      field("pull_number", "Pull number", 16, 4),
      field("cumulative_ack", "Cumulative ACK", 20, 4),
    },
    pull = {
      field("pull_number", "Pull number", 12, 4),
      field("pacer_number", "Pacer number", 16, 4),
      field("cumulative_ack", "Cumulative ACK", 20, 4),
    },
    keepalive = {},
  }
  register(199, protocol("ndp", "NDP", 24, kinds, function(bytes)
    local flags = number(bytes, 0, 2)
    local seq, word = number(bytes, 12, 4), number(bytes, 16, 4)
    if has(flags, DATA) then
      local what = has(flags, CHOPPED) and "header" or "DATA"
      return { kinds.all, kinds.data }, what .. " " .. seq .. (has(flags, RTX) and " again" or "")
    elseif has(flags, ACK) or has(flags, NACK) then
      local what = (has(flags, ACK) and "ACK " or "NACK ") .. seq
      return { kinds.all, kinds.ack }, what .. (has(flags, PULL) and ", PULL " .. word or "")
    elseif has(flags, PULL) then
      return { kinds.all, kinds.pull }, "PULL " .. seq
    end
    return { kinds.all, kinds.keepalive }, has(flags, KEEPALIVE) and "KEEPALIVE" or "unknown"
  end))
end

-- Homa (crates/wire/src/homa.rs).
do
  local TYPES = { "DATA", "GRANT", "RESEND", "UNKNOWN", "BUSY", "NEED_ACK", "ACK", "NACK" }
  local all = {
    field("type", "Type", 0, 1, TYPES),
    field("number", "Message number", 4, 4),
  }
  local level = field("priority", "Priority level", 1, 1)
  local mine = flag("mine", "A message of this packet's source", 1, 1, 1)
  local index = field("index", "Packet", 8, 4)
  local first_missing = "First number missing"
  local kinds = {
    all = all,
    {
      flag("marked", "Incast control: request", 1, 1, 1),
      flag("response", "Response", 1, 1, 2),
      flag("head", "Incast control: begins with little", 1, 1, 4),
      field("payload_len", "Payload length before trimming", 2, 2),
      index,
      field("message_len", "Message length", 12, 6),
      field("unscheduled", "Unscheduled packets", 18, 2),
      field("oldest", "Oldest open message, numbers below", 20, 2),
      field("first_missing", first_missing, 22, 4),
      field("whole", "Whole behind it", 26, 4, "hex"),
    },
    { level, field("granted", "Packets permitted", 8, 4) },
    { level, field("first", "First packet", 8, 4), field("end", "Packet after the last", 12, 4) },
    { mine },
    { mine },
    {},
    { field("first_missing", first_missing, 8, 4), field("whole", "Whole behind it", 12, 4, "hex") },
    { index, field("granted", "Packets permitted", 12, 4) },
  }
  register(146, protocol("homa", "Homa", 16, kinds, function(bytes)
    local kind = number(bytes, 0, 1)
    local what = (TYPES[kind] or "unknown") .. " of message " .. number(bytes, 4, 4)
    return { all, kinds[kind] or {} }, what, kind == 1 and 30 or 16
  end))
end

-- pHost (crates/wire/src/phost.rs).
do
  local TYPES = { "REQ", "TOKEN", "DATA", "ACK", "END" }
  local all = {
    field("type", "Type", 0, 1, TYPES),
    field("message", "Message", 8, 8),
  }
  local token = field("token", "Token", 4, 4)
  local index = field("index", "Packet", 16, 8)
  local message_len = field("message_len", "Message length", 24, 8)
  local kinds = {
    all = all,
    { field("free_tokens", "Free tokens", 4, 4), message_len },
    { token, index, field("missing", "Packets missing", 24, 8) },
    { field("payload_len", "Payload length before trimming", 2, 2), token, index, message_len },
    {},
    {},
  }
  register(254, protocol("phost", "pHost", 32, kinds, function(bytes)
    local kind = number(bytes, 0, 1)
    local what = (TYPES[kind] or "unknown") .. " of message " .. wide(bytes, 8)
    return { all, kinds[kind] or {} }, what
  end))
end

-- pFabric (crates/wire/src/pfabric.rs).
do
  local TYPES = { "DATA", "PROBE", "ACK", "END" }
  local all = {
    field("type", "Type", 0, 1, TYPES),
    field("message", "Message", 8, 8),
  }
  local remaining = field("remaining", "Bytes not acknowledged", 4, 4)
  local index = field("index", "Packet", 16, 8)
  local message_len = field("message_len", "Message length", 24, 8)
  local kinds = {
    all = all,
    { field("payload_len", "Payload length before trimming", 2, 2), remaining, index, message_len },
    { remaining, index, message_len },
    { index, field("missing", "First packet missing", 24, 8) },
    {},
  }
  register(253, protocol("pfabric", "pFabric", 32, kinds, function(bytes)
    local kind = number(bytes, 0, 1)
    local what = (TYPES[kind] or "unknown") .. " of message " .. wide(bytes, 8)
    return { all, kinds[kind] or {} }, what
  end))
end

-- Ultra Ethernet (crates/wire/src/uet.rs).
do
  local TYPES = { [2] = "REQUEST", [8] = "ACK", [10] = "NACK", [11] = "control" }
  local CONTROL = { [0] = "CLOSE", [1] = "CREDIT", [2] = "REQ", [3] = "PROBE" }
  local all = {
    field("type", "Type", 0, 1, TYPES),
    field("message", "Message", 8, 8),
  }
  local ask = flag("flags.ack_request", "Asks for an ACK", 1, 1, 0x01)
  local again = flag("flags.repeated", "Sent before", 1, 1, 0x02)
  local marked = flag("flags.marked", "Marked", 1, 1, 0x04)
  local last_hop = flag("flags.last_hop", "Trimmed at the last hop", 1, 1, 0x08)
  local kept = flag("flags.kept", "The connection is kept", 1, 1, 0x20)
  local probe = flag("flags.probe", "Of a probe", 1, 1, 0x10)
  local entropy = field("entropy", "Entropy value", 2, 2)
  local psn = field("psn", "Packet", 4, 4)
  local length = field("message_len", "Message length", 16, 8)
  local target = field("credit_target", "Credit target / 256", 28, 4)
  local which = field("control", "Control packet", 1, 1, CONTROL)
  local kinds = {
    all = all,
    [2] = { ask, again, kept, entropy, psn, length,
      field("payload_len", "Payload length before trimming", 24, 4), target },
    [8] = { again, marked, probe, entropy, psn, field("bitmap", "Bitmap", 16, 8),
      field("expected", "Next packet expected", 24, 4), field("base", "Base of the bitmap", 28, 4),
      field("received", "Bytes received / 256", 35, 3),
      field("out_of_order", "Packets out of order", 38, 2) },
    [10] = { marked, last_hop, entropy, psn },
    [11] = { which },
    CREDIT = { field("credit", "Credit given / 256", 28, 4) },
    REQ = { length, target },
    PROBE = { entropy, psn },
  }
  register(251, protocol("uet", "Ultra Ethernet", 40, kinds, function(bytes)
    local kind, which = number(bytes, 0, 1), number(bytes, 1, 1)
    local name = kind == 11 and CONTROL[which] or TYPES[kind] or "unknown"
    local more = kind == 11 and kinds[name] or {}
    return { all, kinds[kind] or {}, more }, name .. " of message " .. wide(bytes, 8)
  end))
end

-- nanoTransport: NDP and Homa in a NIC's pipeline (crates/wire/src/nano.rs).
local function nano(ip_protocol, name, title, credit, credit_label, more, id)
  local DATA, ACK, NACK, CREDIT, CHOP = 0x01, 0x02, 0x04, 0x08, 0x10
  local list = {
    field("flags", "Flags", 0, 1, "hex"),
    flag("flags.data", "DATA", 0, 1, DATA),
    flag("flags.ack", "ACK", 0, 1, ACK),
    flag("flags.nack", "NACK", 0, 1, NACK),
    flag("flags." .. credit, credit:upper(), 0, 1, CREDIT),
    flag("flags.chop", "CHOP", 0, 1, CHOP),
    field("src_context", "Source context", 1, 2),
    field("dst_context", "Destination context", 3, 2),
    field("message_len", "Message length", 5, 2),
    field("index", "Packet", 7, 1),
    field(credit .. "_offset", credit_label, 8, 2),
    field("message", "Message of the sender", id, 2),
    field("buffer", "Buffer of the sender", id + 2, 2),
    field("size_class", "Size class of the buffer", id + 4, 1),
  }
  for _, f in ipairs(more) do
    list[#list + 1] = f
  end
  local words = { { DATA, "DATA" }, { ACK, "ACK" }, { NACK, "NACK" }, { CREDIT, credit:upper() } }
  register(ip_protocol, protocol(name, title, 30, { list }, function(bytes)
    local flags, said = number(bytes, 0, 1), {}
    for _, word in ipairs(words) do
      if has(flags, word[1]) then
        said[#said + 1] = word[2]
      end
    end
    if has(flags, CHOP) then
      said = { "header" }
    end
    return { list }, table.concat(said, ", ") .. " " .. number(bytes, 7, 1)
  end))
end
nano(155, "nano-ndp", "nano-NDP", "pull", "Pull offset", {}, 10)
nano(154, "nano-homa", "nano-Homa", "grant", "Grant offset",
  { field("priority", "Priority of the grant", 10, 1) }, 11)

-- RoCE, version 2, after UDP (crates/wire/src/roce.rs).
do
  local OPCODES = {
    [0x00] = "SEND first", [0x01] = "SEND middle", [0x02] = "SEND last", [0x04] = "SEND only",
    [0x0c] = "READ request", [0x0d] = "READ response first", [0x0e] = "READ response middle",
    [0x0f] = "READ response last", [0x10] = "READ response only", [0x11] = "Acknowledge",
    [0x81] = "CNP", [0xc0] = "to be READ",
  }
  local all = {
    field("opcode", "Opcode", 0, 1, OPCODES),
    flag("solicited", "Solicited event", 1, 1, 0x80),
    field("partition_key", "Partition key", 2, 2, "hex"),
    flag("becn", "BECN", 4, 1, 0x40),
    field("queue_pair", "Destination queue pair", 5, 3),
    flag("ack_request", "Acknowledgement requested", 8, 1, 0x80),
    flag("ends", "The queue pair ends", 8, 1, 1),
    flag("given_up", "The message is given up", 8, 1, 2),
    flag("bitmap_follows", "A bitmap follows", 8, 1, 4),
    field("psn", "Packet sequence number", 9, 3),
  }
  local kinds = {
    all = all,
    [0x0c] = { field("position", "Position", 12, 8), field("packets", "Packets", 24, 4) },
    [0x11] = {
      field("syndrome", "Syndrome", 12, 1, "hex"),
      field("messages", "Messages received", 13, 3),
      field("caused_by", "Caused by the packet so far behind", 16, 2),
      field("turnaround", "Nanoseconds from its arrival", 18, 4),
    },
    [0xc0] = { field("message", "Message", 12, 8), field("message_len", "Message length", 20, 8) },
  }
  local bitmap = { field("bitmap", "Arrived behind it", 22, 8, "hex") }
  kinds.bitmap = bitmap
  local lengths = { [0x0c] = 28, [0x11] = 22, [0x81] = 28, [0xc0] = 28 }
  local proto = protocol("roce", "RoCE", 12, kinds, function(bytes)
    local opcode = number(bytes, 0, 1)
    local lists, length = { all, kinds[opcode] or {} }, lengths[opcode] or 12
    local what = (OPCODES[opcode] or "unknown") .. " " .. number(bytes, 9, 3)
    if opcode == 0x11 then
      what = (number(bytes, 12, 1) == 0x60 and "NAK " or "ACK ") .. number(bytes, 9, 3)
      if has(number(bytes, 8, 1), 4) then
        lists[3], length = bitmap, length + 8
      end
    end
    return lists, what, length
  end)
  DissectorTable.get("udp.port"):add(4791, proto)
  transports[252] = proto.dissector
end

-- Constant-bit-rate sources, after UDP (crates/wire/src/cbr.rs).
do
  local list = { field("message", "Message", 0, 8), field("seq", "Sequence number", 8, 8) }
  local proto, dissect = protocol("cbr", "CBR", 16, { list }, function(bytes)
    return { list }, "packet " .. wide(bytes, 8) .. " of message " .. wide(bytes, 0)
  end)
  -- What is shorter is sent to be discarded by somebody else.
  function proto.dissector(bytes, packet, tree)
    return bytes:len() < 16 and 0 or dissect(bytes, packet, tree)
  end
  DissectorTable.get("udp.port"):add(9, proto)
end

-- The shim of real hosts, after UDP (crates/wire/src/shim.rs).
do
  local LEN, TAGS, VERSION = 88, 32, 2
  local list = {
    field("version", "Version", 4, 1),
    field("proto", "Transport protocol", 5, 1),
    field("class", "Traffic class", 6, 1),
    field("flags", "Flags", 7, 1, "hex"),
    flag("flags.trimmed", "Trimmed", 7, 1, 0x01),
    flag("flags.bounced", "Bounced", 7, 1, 0x02),
    flag("flags.ce", "Congestion experienced", 7, 1, 0x08),
    flag("flags.int", "Telemetry", 7, 1, 0x20),
    field("src", "Source host", 8, 4),
    field("dst", "Destination host", 12, 4),
    field("path", "Path", 16, 4),
    field("wire_len", "Length on a simulated wire", 20, 2),
    field("hdr_len", "Length of the transport header", 22, 1),
    field("tags_len", "Bytes of tags", 23, 1),
    field("message", "Message", 24, 8),
    field("offset", "Offset", 32, 8),
    field("span", "Span", 40, 4),
    field("payload_len", "Payload length", 44, 2),
    field("tag", "Tag", 46, 2),
    field("token", "Token", 48, 8, "hex"),
    field("src_life", "Life of the source", 56, 8),
    field("dst_life", "Life of the destination", 64, 8),
    field("oldest", "Oldest unfinished message", 72, 8),
    field("header_check", "Check of the headers", 80, 4, "hex"),
    field("payload_check", "Check of the payload", 84, 4, "hex"),
  }
  local tags = {
    field("header_tag", "Tag of the headers, first half", 88, 8, "hex"),
    field("payload_tag", "Tag of the payload, first half", 104, 8, "hex"),
  }
  local shim, fields_alone = protocol("shim", "Trimline", LEN, { list, tags }, function(bytes)
    if number(bytes, 23, 1) == TAGS then
      return { list, tags }, "message " .. wide(bytes, 24), LEN + TAGS
    end
    return { list }, "message " .. wide(bytes, 24)
  end)
  function shim.dissector(bytes, packet, tree)
    local start = LEN + number(bytes, 23, 1)
    local header = bytes:len() >= start and number(bytes, 22, 1) or 0
    local length = math.min(start, bytes:len())
    fields_alone(bytes(0, length):tvb(), packet, tree)
    if bytes:len() >= start + header and header > 0 then
      local transport = transports[number(bytes, 5, 1)]
      local call = transport or Dissector.get("data")
      call:call(bytes(start, header):tvb(), packet, tree)
    end
    if bytes:len() > start + header then
      Dissector.get("data"):call(bytes(start + header):tvb(), packet, tree)
    end
    return bytes:len()
  end

  shim:register_heuristic("udp", function(bytes, packet, tree)
    if bytes:len() < 5 or bytes(0, 4):string() ~= "TRML" or number(bytes, 4, 1) ~= VERSION then
      return false
    end
    shim.dissector(bytes, packet, tree)
    return true
  end)
end
