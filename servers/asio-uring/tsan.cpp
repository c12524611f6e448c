#if defined(__SANITIZE_THREAD__)

/// Hides a false report: the kernel orders what one thread hands to the ring and another takes out, which the thread
/// sanitizer does not see. So it ignores the function of Asio that takes things out.
extern "C" const char* __tsan_default_suppressions() { return "race:boost::asio::detail::io_uring_service::run\n"; }

#endif
