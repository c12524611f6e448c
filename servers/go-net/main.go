// Go's standard library: a goroutine for each connection, and in chat another that writes.
package main

import (
	"net"
	"time"

	"netdyno"
)

func main() {
	options := netdyno.OptionsFromLauncher()
	signals := netdyno.TerminationSignals()
	netdyno.UseThreads(options.Threads)
	listener := netdyno.Listen(options)
	server := &server{options: options, backend: netdyno.ConnectPool(options), members: map[*client]struct{}{}}
	accepting := make(chan struct{})
	go func() {
		server.acceptAll(listener)
		close(accepting)
	}()
	netdyno.AnnounceReady(listener)

	<-signals
	grace := time.After(netdyno.ShutdownGrace)
	listener.Close()
	<-accepting
	select {
	case <-server.end():
	case <-grace:
	}
	netdyno.Finish(&server.totals)
}

func (s *server) acceptAll(listener *net.TCPListener) {
	for connection := netdyno.Accept(listener, s.options); connection != nil; {
		go s.join(connection).serve()
		connection = netdyno.Accept(listener, s.options)
	}
}
