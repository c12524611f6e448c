package main

import (
	"net"
	"sync"

	"netdyno"
)

// server is what all connections share. Any goroutine.
type server struct {
	options *netdyno.Options
	backend *netdyno.Pool
	totals  netdyno.Totals

	mutex    sync.Mutex
	members  map[*client]struct{}
	snapshot []*client // of members; nil when out of date
	present  sync.WaitGroup
}

// join is called by the goroutine that accepts.
func (s *server) join(connection *net.TCPConn) *client {
	counts := s.totals.Shard()
	counts.Connections.Add(1)
	reads := func() bool { return netdyno.TakesMore(connection) }
	c := &client{
		server:     s,
		connection: connection,
		stream:     netdyno.NewStream(connection, s.options, counts),
		counts:     counts,
		outbox:     newOutbox(s.options.OutboxLimit, reads),
	}
	s.present.Add(1)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.members[c] = struct{}{}
	s.snapshot = nil
	return c
}

func (s *server) leave(c *client) {
	s.mutex.Lock()
	delete(s.members, c)
	s.snapshot = nil
	s.mutex.Unlock()
	s.present.Done()
}

// everybody returns all members at this moment. Copied only when one has joined or left since the last call.
func (s *server) everybody() []*client {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.snapshot == nil {
		s.snapshot = make([]*client, 0, len(s.members))
		for member := range s.members {
			s.snapshot = append(s.snapshot, member)
		}
	}
	return s.snapshot
}

// broadcast hands the frame to the audience, and waits for those whose goroutines are behind with writing.
func (s *server) broadcast(frame []byte, sender *client) {
	for _, member := range s.everybody() {
		if (member != sender || s.options.ToAll) && member.post(frame) {
			member.outbox.waitWhileBehind()
		}
	}
}

// end ends every stream at what has arrived, once no client joins any more; the channel is closed when all have left.
func (s *server) end() <-chan struct{} {
	for _, member := range s.everybody() {
		_ = member.connection.CloseRead()
	}
	done := make(chan struct{})
	go func() {
		s.present.Wait()
		close(done)
	}()
	return done
}
