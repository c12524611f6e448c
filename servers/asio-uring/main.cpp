// asio-callbacks over io_uring in the place of epoll. Nothing else differs: these are its very sources.
#define BOOST_ASIO_HAS_IO_URING 1
#define BOOST_ASIO_DISABLE_EPOLL 1
#include "servers/asio-callbacks/main.cpp"
