struct info_t { bit<8> a; }
struct headers_t { bit<8> n; }
control Work<H>(inout H h, inout info_t info);
package Box<H>(Work<H> work);
control W(inout headers_t h, inout info_t info) {
    action a() { info.a = 3; }
    table t { key = { info.a: exact; } actions = { a; } default_action = a; }
    apply { error e = error.NoMatch; t.apply(); }
}
Box(W()) main;
