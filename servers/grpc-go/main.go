// The workload grpc by grpc-go: a goroutine for each request.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"netdyno/grpc-go/unary"
)

type work struct {
	unary.UnimplementedWorkServer
}

// Busy by the clock: Go moves goroutines between threads, so there is no CPU clock of one.
func burn(duration time.Duration) {
	for end := time.Now().Add(duration); time.Now().Before(end); {
	}
}

func (work) Answer(_ context.Context, request *unary.Request) (*unary.Reply, error) {
	if wait := request.GetWaitUs(); wait > 0 {
		time.Sleep(time.Duration(wait) * time.Microsecond)
	}
	burn(time.Duration(request.GetCpuUs()) * time.Microsecond)
	stamp := request.GetStamp()
	body := make([]byte, max(len(stamp), int(request.GetSize())))
	for at := copy(body, stamp); at < len(body); at++ {
		body[at] = 'x'
	}
	return &unary.Reply{Body: body}, nil
}

func main() {
	threads, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	runtime.GOMAXPROCS(threads)
	var options []grpc.ServerOption
	if file := os.Args[3]; file != "" {
		certificate, err := credentials.NewServerTLSFromFile(file, file)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(certificate))
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(options...)
	unary.RegisterWorkServer(server, work{})
	log.Fatal(server.Serve(listener))
}
