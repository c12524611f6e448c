// The workload web by net/http alone: a goroutine for each connection.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

type item struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

var items = []item{{1, "one"}, {2, "two"}, {3, "three"}}

// Busy by the clock: Go moves goroutines between threads, so there is no CPU clock of one.
func burn(duration time.Duration) {
	for end := time.Now().Add(duration); time.Now().Before(end); {
	}
}

func fill(text string, size int) string {
	if size > len(text) {
		text += strings.Repeat("x", size-len(text))
	}
	return text
}

func stream(writer http.ResponseWriter, stamp string, chunks int, every time.Duration, size int) {
	writer.Header().Set("Content-Type", "text/event-stream")
	begin := time.Now()
	for number := 0; number < chunks; number++ {
		time.Sleep(time.Until(begin.Add(time.Duration(number) * every)))
		if _, err := fmt.Fprintf(writer, "data: %s\n\n", fill(fmt.Sprintf("%s%04d", stamp, number), size)); err != nil {
			return // the client is gone
		}
		writer.(http.Flusher).Flush()
	}
}

func answer(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	wait, _ := time.ParseDuration(query.Get("wait"))
	cpu, _ := time.ParseDuration(query.Get("cpu"))
	size, _ := strconv.Atoi(query.Get("size"))
	if wait > 0 {
		time.Sleep(wait)
	}
	burn(cpu)
	stamp := request.URL.Path[1:]
	if chunks, _ := strconv.Atoi(query.Get("chunks")); chunks > 0 {
		every, _ := time.ParseDuration(query.Get("every"))
		stream(writer, stamp, chunks, every, size)
		return
	}
	stamp = fill(stamp, size)
	writer.Header().Set("Content-Type", "text/plain")
	writer.Header().Set("Content-Length", strconv.Itoa(len(stamp)))
	io.WriteString(writer, stamp)
}

func answerItems(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	if request.Method == http.MethodPost {
		body, _ := io.ReadAll(request.Body)
		fmt.Fprint(writer, len(body))
		return
	}
	json.NewEncoder(writer).Encode(items)
}

func main() {
	threads, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	runtime.GOMAXPROCS(threads)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", answer)
	http.HandleFunc("/items", answerItems)
	log.Fatal(http.Serve(listener, nil))
}
