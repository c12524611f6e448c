// The workload web by gnet: netdyno's own HTTP, as in go-net, on gnet's event loops in the place of goroutines.
package main

import (
	"log"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"netdyno"
)

// flushPause is how long a connection that is to be closed waits before it checks again whether all is sent.
const flushPause = time.Millisecond

type server struct {
	gnet.BuiltinEventEngine
	options *netdyno.Options
	totals  netdyno.Totals
}

// client is one connection. Its event loop only, except due.
type client struct {
	session *netdyno.Session
	effects *netdyno.Effects
	next    int  // of the effects
	waiting bool // for the end of a service time
	closing bool // once all is sent
	due     atomic.Bool
}

// OnOpen is called by the loop that got the connection.
func (s *server) OnOpen(connection gnet.Conn) ([]byte, gnet.Action) {
	connection.SetContext(&client{
		session: netdyno.NewSession(s.options, s.totals.Shard()),
		effects: netdyno.NewEffects(s.options),
	})
	return nil, gnet.None
}

// OnClose is called by that loop, too.
func (s *server) OnClose(connection gnet.Conn, _ error) gnet.Action {
	connection.Context().(*client).session.Discard()
	return gnet.None
}

// OnTraffic is called when something has come, and when a time is over (Wake).
func (s *server) OnTraffic(connection gnet.Conn) gnet.Action {
	c := connection.Context().(*client)
	if c.waiting && !c.due.Swap(false) {
		return gnet.None // gnet keeps what has come
	}
	c.waiting = false
	for c.carryOut(connection) && !c.closing && connection.InboundBuffered() > 0 {
		input, err := connection.Next(-1)
		if err != nil {
			return gnet.Close
		}
		c.effects.Clear()
		c.next = 0
		c.session.Receive(input, c.effects)
	}
	if !c.closing {
		return gnet.None
	}
	if connection.OutboundBuffered() > 0 { // gnet would throw it away
		c.wakeAfter(connection, flushPause)
		return gnet.None
	}
	return gnet.Close
}

// carryOut returns false where a time must pass first.
func (c *client) carryOut(connection gnet.Conn) bool {
	for c.next < len(c.effects.List) {
		effect := c.effects.List[c.next]
		c.next++
		switch effect.Kind {
		case netdyno.Write:
			_, _ = connection.Write(c.effects.Bytes(effect)) // after an error gnet has closed it
		case netdyno.Wait:
			c.wakeAfter(connection, effect.Duration)
			return false
		case netdyno.Burn:
			netdyno.BurnCPU(effect.Duration)
		case netdyno.Close:
			c.closing = true
		}
	}
	return true
}

func (c *client) wakeAfter(connection gnet.Conn, duration time.Duration) {
	c.waiting = true
	time.AfterFunc(duration, func() {
		c.due.Store(true)
		_ = connection.Wake(nil)
	})
}

func main() {
	threads, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	runtime.GOMAXPROCS(threads)
	s := &server{options: &netdyno.Options{Workload: "web", MaxFrame: 1 << 20}}
	log.Fatal(gnet.Run(s, "tcp://"+os.Args[1], gnet.WithNumEventLoop(threads), gnet.WithLogLevel(logging.WarnLevel)))
}
