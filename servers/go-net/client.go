package main

import (
	"io"
	"net"

	"netdyno"
)

// client is one connection, and the goroutine that serves it.
type client struct {
	server     *server
	connection *net.TCPConn
	stream     netdyno.Stream // over it
	counts     *netdyno.Shard
	outbox     *outbox // of chat
}

// serve is the connection from its first byte to its last.
func (c *client) serve() {
	defer c.server.leave(c)
	defer c.connection.Close()
	written := make(chan error, 1)
	if c.server.options.Workload == "chat" {
		go c.writeOutbox(written)
	} else {
		written <- nil
	}
	broken := c.converse()
	c.outbox.close()
	if err := <-written; err == nil && broken == nil {
		c.stream.End()
	}
}

// converse returns when the session closes, or with the reason why nothing can be read or sent any more.
func (c *client) converse() error {
	options := c.server.options
	session := netdyno.NewSession(options, c.counts)
	defer session.Discard()
	effects := netdyno.NewEffects(options)
	buffer := make([]byte, options.ReadBuffer)
	for {
		effects.Clear()
		switch n, err := c.stream.Read(buffer); {
		case n > 0:
			session.Receive(buffer[:n], effects)
		case err == io.EOF:
			session.End(effects)
		case err == netdyno.ErrNoTLS:
			session.Fail(effects)
		case err != nil:
			return err
		}
		for _, effect := range effects.List {
			switch effect.Kind {
			case netdyno.Write:
				if err := c.write(effects.Bytes(effect)); err != nil {
					return err
				}
			case netdyno.Broadcast:
				c.server.broadcast(effect.Frame, c)
			case netdyno.Wait:
				if c.server.backend != nil {
					c.server.backend.Ask(effect.Remaining())
				} else if err := netdyno.WaitUnlessReset(c.connection, effect.Remaining()); err != nil {
					return err
				}
			case netdyno.Burn:
				netdyno.BurnCPU(effect.Duration)
			case netdyno.Close:
				return nil
			}
		}
	}
}

// write returns when all is sent: a client that takes no replies is not read.
func (c *client) write(bytes []byte) error {
	_, err := c.stream.Write(bytes)
	return err
}

// post puts a frame into the outbox; a reader that does not read while too much waits is given up and counted. True
// where much waits now. Any goroutine.
func (c *client) post(frame []byte) bool {
	taken, much := c.outbox.add(frame)
	if !taken {
		c.counts.SlowClosed.Add(1)
		c.connection.Close() // which ends its reads and writes
	}
	return much
}

// writeOutbox sends what is posted until the outbox is closed and empty: what several senders said meanwhile in one
// write, or (split) each part in its own, or (single) each frame.
func (c *client) writeOutbox(written chan<- error) {
	var frames [][]byte
	var buffers net.Buffers // here, as it would be allocated for each write
	for {
		frames = c.outbox.take(frames)
		if len(frames) == 0 {
			written <- nil
			return
		}
		var err error
		switch {
		case c.server.options.Split:
			err = c.writeParts(frames)
		case c.server.options.Single:
			err = c.writeEach(frames)
		default:
			buffers = frames
			var n int64
			n, err = buffers.WriteTo(c.connection)
			c.counts.BytesOut.Add(uint64(n))
		}
		if err != nil {
			c.connection.Close() // this ends the goroutine that reads
			written <- err
			return
		}
	}
}

func (c *client) writeEach(frames [][]byte) error {
	for _, frame := range frames {
		if err := c.write(frame); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) writeParts(frames [][]byte) error {
	for _, frame := range frames {
		if err := c.write(frame[:netdyno.Header]); err != nil {
			return err
		}
		if err := c.write(frame[netdyno.Header:]); err != nil {
			return err
		}
	}
	return nil
}
