#if defined(__SANITIZE_THREAD__)

/// What one thread has handed to the ring, another may take out of it: the kernel orders the two, which the thread
/// sanitizer does not see. So it does not look at the function of Asio that takes things out.
extern "C" const char* __tsan_default_suppressions() { return "race:boost::asio::detail::io_uring_service::run\n"; }

#endif
