#include "skeleton.inc"
control W(inout headers_t h, inout info_t info) { apply { } }
