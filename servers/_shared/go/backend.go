package netdyno

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"time"
)

// Pool holds the connections to the backend, one question in flight on each (protocol/WIRE.md, Backend). A goroutine
// without a free one waits: a channel serves its receivers in the order of arrival. Any goroutine.
type Pool struct {
	free chan *backendConnection
}

type backendConnection struct {
	socket net.Conn
	frame  []byte // reused
}

// ConnectPool makes the connections, or dies; nil without service kind backend.
func ConnectPool(options *Options) *Pool {
	if options.Service != "backend" {
		return nil
	}
	pool := &Pool{free: make(chan *backendConnection, options.PoolSize)}
	dialer := net.Dialer{KeepAlive: -1} // as of clients (Listen)
	address := net.JoinHostPort(options.BackendHost, strconv.Itoa(options.BackendPort))
	for i := 0; i < options.PoolSize; i++ {
		socket, err := dialer.Dial("tcp", address)
		if err != nil {
			die("cannot connect to the backend tcp://" + address + "; start it first: " + err.Error())
		}
		pool.free <- &backendConnection{socket: socket}
	}
	return pool
}

// Ask returns when the backend has replied after the duration.
func (p *Pool) Ask(duration time.Duration) {
	connection := <-p.free
	if connection.ask(duration) != nil {
		die("the backend closed a connection; it must run as long as this server")
	}
	p.free <- connection
}

func (c *backendConnection) ask(duration time.Duration) error {
	c.frame = appendQuestion(c.frame[:0], duration)
	if _, err := c.socket.Write(c.frame); err != nil {
		return err
	}
	header := c.frame[:Header]
	if _, err := io.ReadFull(c.socket, header); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(header))
	if size > cap(c.frame) {
		c.frame = make([]byte, size)
	}
	_, err := io.ReadFull(c.socket, c.frame[:size])
	return err
}

// appendQuestion appends the frame that asks for a reply after a duration, in whole microseconds.
func appendQuestion(frame []byte, duration time.Duration) []byte {
	const requestField, workloadField = 1, 2
	var request [1 + binary.MaxVarintLen64]byte
	request[0] = workloadField<<3 | varint
	microseconds := uint64((duration + time.Microsecond - 1) / time.Microsecond)
	size := byte(1 + binary.PutUvarint(request[1:], microseconds))
	frame = append(frame, 0, 0, 0, size+2, requestField<<3|lengths, size)
	return append(frame, request[:size]...)
}
