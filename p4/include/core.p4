// What every P4-16 program may use, whatever its target (P4-16 language specification v1.2.4,
// appendix "P4 core library"). Programs begin with #include <core.p4>.

/// Why a parser rejects a packet.
error {
    NoError,           // none
    PacketTooShort,    // extract ran past the end of the packet
    NoMatch,           // no case of a select matches
    StackOutOfBounds,  // reference to an invalid element of a header stack
    HeaderTooShort,    // extract into a variable field that is too small
    ParserTimeout,     // the parser took too long
    ParserInvalidArgument
}

/// The packet that a parser reads.
extern packet_in {
    /// Read the header and step over it.
    void extract<T>(out T hdr);
    /// Read without stepping over it.
    T lookahead<T>();
    /// Step over this many bits.
    void advance(in bit<32> sizeInBits);
    /// Bytes of the packet, if the target knows.
    bit<32> length();
}

/// The packet that a deparser writes.
extern packet_out {
    /// Append the header if it is valid, else nothing.
    void emit<T>(in T hdr);
}

/// In a parser: go to reject with `toSignal` unless `check`.
extern void verify(in bool check, in error toSignal);

/// The action that does nothing.
@noWarn("unused")
action NoAction() {}

/// How a table's key is compared.
match_kind {
    exact,    // equal
    ternary,  // equal where the mask is one
    lpm       // longest prefix
}
