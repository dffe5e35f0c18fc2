//! Size distributions, arrivals, traffic matrices, trace readers, applications.
