#include "skeleton.inc"
@foo(] header a_t { bit<8> x; }
@bar(a[1}) header b_t { bit<8> x; }
