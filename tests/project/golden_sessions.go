// What the sessions of servers in Go make of a stream, for test_rust_and_go.py. A line of input is a connection: its
// options, `ends` or `stays`, and its slices in hexadecimal digits. Each effect is a line, and the totals are the last
// line of a connection. A program, because to compile the package testing takes longer than all the rest.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"netdyno"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range strings.Split(strings.TrimSuffix(string(input), "\n"), "\n") {
		parts := strings.Split(line, "\t")
		options, err := netdyno.ReadOptions(parts[0])
		if err != nil {
			panic(err)
		}
		var counts netdyno.Shard
		session := netdyno.NewSession(options, &counts)
		effects := netdyno.NewEffects(options)
		for _, digits := range parts[2:] {
			slice, err := hex.DecodeString(digits)
			if err != nil {
				panic(err)
			}
			session.Receive(slice, effects)
			for i := range slice {
				slice[i] = '?' // as a server's read buffer is written over
			}
			tell(out, effects, options.Split)
		}
		if parts[1] == "ends" {
			session.End(effects)
			tell(out, effects, options.Split)
		}
		fmt.Fprintln(out, "totals", counts.Requests.Load(), counts.ProtocolErrors.Load())
	}
}

func tell(out io.Writer, effects *netdyno.Effects, split bool) {
	for _, effect := range effects.List {
		switch effect.Kind {
		case netdyno.Write:
			fmt.Fprintf(out, "write %x\n", effects.Bytes(effect))
		case netdyno.Broadcast:
			if split {
				fmt.Fprintf(out, "broadcast %x %x\n", effect.Frame[:netdyno.Header], effect.Frame[netdyno.Header:])
			} else {
				fmt.Fprintf(out, "broadcast %x\n", effect.Frame)
			}
		case netdyno.Wait:
			fmt.Fprintln(out, "wait", int64(effect.Duration))
		case netdyno.Burn:
			fmt.Fprintln(out, "burn", int64(effect.Duration))
		case netdyno.Close:
			fmt.Fprintln(out, "close")
		}
	}
	effects.Clear()
}
