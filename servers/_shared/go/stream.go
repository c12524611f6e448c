package netdyno

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// ErrNoTLS is what a Stream returns where the peer does not speak TLS, or refuses ours: a protocol error.
var ErrNoTLS = errors.New("no TLS")

// Stream carries the bytes of a session: the connection itself, or TLS over it. It counts what the kernel sees. One
// goroutine may read, and another write.
type Stream interface {
	// Read returns io.EOF when the peer has ended its stream.
	Read(buffer []byte) (int, error)
	// Write returns when all is sent.
	Write(bytes []byte) (int, error)
	// End is called before the connection is closed, when all is sent.
	End()
}

// NewStream encrypts where the options ask for it.
func NewStream(connection *net.TCPConn, options *Options, counts *Shard) Stream {
	plain := &plainStream{TCPConn: connection, counts: counts}
	if options.TLS == nil {
		return plain
	}
	return &tlsStream{Conn: tls.Server(plain, options.TLS), plain: plain}
}

type plainStream struct {
	*net.TCPConn
	counts *Shard
}

func (s *plainStream) Read(buffer []byte) (int, error) {
	n, err := s.TCPConn.Read(buffer)
	s.counts.BytesIn.Add(uint64(n))
	return n, err
}

func (s *plainStream) Write(bytes []byte) (int, error) {
	n, err := s.TCPConn.Write(bytes)
	s.counts.BytesOut.Add(uint64(n))
	return n, err
}

func (s *plainStream) End() {
	EndStream(s.TCPConn)
}

type tlsStream struct {
	*tls.Conn
	plain   *plainStream
	refused bool
}

// Read shakes hands first.
func (s *tlsStream) Read(buffer []byte) (int, error) {
	n, err := s.Conn.Read(buffer)
	if n > 0 || err == nil {
		return n, nil
	}
	var number syscall.Errno
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // by close_notify or without, by a FIN anywhere
		return 0, io.EOF
	case errors.As(err, &number): // the connection's own, such as a reset
		return 0, err
	}
	s.refused = true
	return 0, ErrNoTLS
}

// End sends close_notify, but not after an alert.
func (s *tlsStream) End() {
	if !s.refused {
		_ = s.CloseWrite()
	}
	s.plain.End()
}

// loadTLS reads certificate and key. It returns nil without a file.
func loadTLS(file string) *tls.Config {
	if file == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		die("--tls: " + err.Error())
	}
	return &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		// By default the first 128 KiB of a connection leave in records of a packet each; in no other server do they.
		DynamicRecordSizingDisabled: true,
	}
}
