package netdyno

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// ShutdownGrace is how long a server may still work on what is in flight after a shutdown signal.
const ShutdownGrace = 2 * time.Second

// exhaustedPause is how long to wait before accepting again when descriptors or memory ran out.
const exhaustedPause = 10 * time.Millisecond

// exit is not os.Exit, which sleeps for a second where the race detector is built in. What that had to say is on stderr.
func exit(code int) {
	syscall.Exit(code)
}

func die(message string) {
	os.Stderr.WriteString(program() + ": " + message + "\n")
	exit(1)
}

// TerminationSignals delivers SIGTERM and SIGINT.
func TerminationSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return signals
}

// UseThreads lets n threads run Go code at a time, and starts now what the runtime would start as it goes: it never ends
// a thread, so that one which a burst once needed would stay and be counted.
func UseThreads(n int) {
	// Some wait for signals, in epoll_wait(2), or for the others; a system call that takes its time leaves its thread.
	const besides = 9
	tasks, err := os.Open("/proc/self/task")
	if err != nil {
		die(err.Error())
	}
	defer tasks.Close()
	runtime.GOMAXPROCS(1)
	var held, done sync.WaitGroup
	release := make(chan struct{})
	// One by one: what else is ready to run has its turn before each, and may need a thread of its own.
	for runtime.Gosched(); threads(tasks) < n+besides; runtime.Gosched() {
		held.Add(1)
		done.Add(1)
		go func() {
			runtime.LockOSThread() // a thread for each, as none may run another's goroutine
			held.Done()
			<-release
			runtime.UnlockOSThread()
			done.Done()
		}()
		held.Wait()
	}
	close(release)
	done.Wait()
	runtime.GOMAXPROCS(n)
}

// threads that the process has, by proc(5): a folder for each, and so a link to theirs. The system call is a raw one, as
// another may let go of this thread, for which the runtime would start one more.
func threads(tasks *os.File) int {
	var found syscall.Stat_t
	syscall.RawSyscall(syscall.SYS_FSTAT, tasks.Fd(), uintptr(unsafe.Pointer(&found)), 0)
	return int(found.Nlink) - 2
}

// Listen dies with a hint where it cannot.
func Listen(options *Options) *net.TCPListener {
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(options.Host, strconv.Itoa(options.Port)))
	if err != nil {
		die("cannot resolve '" + options.Host + "': " + err.Error())
	}
	network := "tcp6"
	if address.IP.To4() != nil {
		network = "tcp4" // with "tcp", 0.0.0.0 would be every IPv6 address as well
	}
	// Without keep-alive, which Go turns on with three system calls for each connection and no other contestant has.
	listening := net.ListenConfig{KeepAlive: -1}
	listener, err := listening.Listen(context.Background(), network, address.String())
	if err != nil {
		die("cannot listen on tcp://" + address.String() + hint(err) + ": " + err.Error())
	}
	// Go takes the backlog of the system; a second listen(2) changes it.
	control(listener.(*net.TCPListener), func(fd int) { err = syscall.Listen(fd, options.Backlog) })
	if err != nil {
		die("listen: " + err.Error())
	}
	return listener.(*net.TCPListener)
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "; another program listens there: choose another port, or port 0 for a free one"
	case errors.Is(err, syscall.EACCES):
		return "; ports below 1024 need rights: choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "; that address is not one of this machine's"
	}
	return ""
}

func control(socket syscall.Conn, do func(fd int)) {
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// Accept returns nil once the listener is closed. While descriptors or memory lack, clients wait in the queue.
func Accept(listener *net.TCPListener, options *Options) *net.TCPConn {
	for {
		connection, err := listener.AcceptTCP()
		switch {
		case err == nil:
			if !options.NoDelay { // Go has turned it on
				_ = connection.SetNoDelay(false)
			}
			return connection
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS),
			errors.Is(err, syscall.ENOMEM):
			time.Sleep(exhaustedPause)
		} // other errors concern that peer alone
	}
}

// AnnounceReady prints the one line that says the server accepts.
func AnnounceReady(listener *net.TCPListener) {
	os.Stdout.WriteString(`{"ready":true,"endpoint":"tcp://` + listener.Addr().String() + `","pid":` +
		strconv.Itoa(os.Getpid()) + "}\n")
}

// Finish prints the one line of totals and ends the program, whatever its goroutines still do.
func Finish(totals *Totals) {
	os.Stdout.WriteString(totals.JSON() + "\n")
	exit(0)
}

// EndStream is called before closing: it ends the sending side, and throws away what has arrived. A close with unread
// input resets the connection (RFC 1122, 4.2.2.13), and a peer that is reset may lose the replies under way to it (RFC
// 9112, 9.6).
func EndStream(connection *net.TCPConn) {
	const mostReads = 256 // a peer that sends on and on is reset after all
	_ = connection.CloseWrite()
	scrap := make([]byte, 16<<10)
	control(connection, func(fd int) {
		for i := 0; i < mostReads; i++ {
			if n, err := syscall.Read(fd, scrap); n <= 0 || err != nil {
				return
			}
		}
	})
}

// Events of poll.h.
const (
	pollOut = 4
	pollErr = 8
	pollHup = 16
)

// TakesMore says whether the kernel takes bytes for the peer of a connection now: a reading peer leaves room for more.
func TakesMore(connection *net.TCPConn) bool {
	var found int16
	control(connection, func(fd int) { found = pollNow(fd, pollOut) })
	return found == pollOut
}

// pollNow is poll(2) of one descriptor, which returns at once: the system call is a raw one.
func pollNow(fd int, events int16) int16 {
	watched := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: events}
	var now syscall.Timespec
	syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&watched)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return watched.revents
}

// WaitUnlessReset lets the duration pass, as time.Sleep does; when the peer resets the connection meanwhile, it returns
// an error at once. Nothing is read: the runtime checks again whenever something has happened to the connection.
func WaitUnlessReset(connection *net.TCPConn, duration time.Duration) error {
	raw, err := connection.SyscallConn()
	if err != nil {
		return err
	}
	if err := connection.SetReadDeadline(time.Now().Add(duration)); err != nil {
		return err
	}
	err = raw.Read(func(fd uintptr) bool { return pollNow(int(fd), 0)&(pollErr|pollHup) != 0 })
	if err == nil {
		return syscall.ECONNRESET
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return connection.SetReadDeadline(time.Time{})
}

// threadAndItsTime says on which thread the goroutine is, and what CPU time that has had.
func threadAndItsTime() (thread int, used time.Duration) {
	const clockThreadCPUTimeID = 3 // time.h
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPUTimeID, uintptr(unsafe.Pointer(&now)), 0)
	return syscall.Gettid(), time.Duration(now.Nano())
}

// BurnCPU keeps a core busy for so much CPU time of whatever thread the goroutine is on (so being preempted does not
// count as work). Go moves a goroutine that runs for 10 ms to another thread, so that it is counted in slices: of one
// that did not end on its thread nothing, of any other at most its length, as another goroutine may have had the rest.
func BurnCPU(duration time.Duration) {
	const slice = 100 * time.Microsecond
	for duration > 0 {
		piece := duration
		if piece > slice {
			piece = slice
		}
		thread, before := threadAndItsTime()
		for began := time.Now(); time.Since(began) < piece; {
		}
		same, after := threadAndItsTime()
		used := after - before
		if used > piece {
			used = piece
		}
		if same == thread {
			duration -= used
		}
	}
}
