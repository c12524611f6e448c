//go:build tls

package netdyno

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
)

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

// loadTLS reads certificate and key, and returns what puts TLS over a connection; nil without a file.
func loadTLS(file string) func(*plainStream) Stream {
	if file == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		die("--tls: " + err.Error())
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		// By default the first 128 KiB of a connection leave in records of a packet each; in no other server do they.
		DynamicRecordSizingDisabled: true,
	}
	return func(plain *plainStream) Stream {
		return &tlsStream{Conn: tls.Server(plain, config), plain: plain}
	}
}
