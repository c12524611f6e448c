package netdyno

import (
	"errors"
	"net"
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
	if options.encrypt == nil {
		return plain
	}
	return options.encrypt(plain)
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
