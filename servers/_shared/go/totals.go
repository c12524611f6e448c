package netdyno

import (
	"strconv"
	"sync/atomic"
)

// Totals is what a server did. Any goroutine may add to a shard.
type Totals struct {
	shards [64]Shard
	next   atomic.Uint32
}

// Shard is what the connections that got it did. Go does not tell on which thread a goroutine runs, so that a few
// connections share a shard, and counting is not what a comparison of thread counts measures.
type Shard struct {
	Requests, BytesIn, BytesOut, Connections, ProtocolErrors, SlowClosed atomic.Uint64
	_                                                                    [16]byte // a cache line of its own
}

// Shard returns one for a new connection.
func (t *Totals) Shard() *Shard {
	return &t.shards[t.next.Add(1)%uint32(len(t.shards))]
}

// JSON is the one line that ends a server's life. Exact once nothing is counted any more; a lower bound before.
func (t *Totals) JSON() string {
	names := []string{"requests", "bytes_in", "bytes_out", "connections", "protocol_errors", "slow_closed"}
	sums := make([]uint64, len(names))
	for i := range t.shards {
		shard := &t.shards[i]
		counts := []*atomic.Uint64{&shard.Requests, &shard.BytesIn, &shard.BytesOut, &shard.Connections,
			&shard.ProtocolErrors, &shard.SlowClosed}
		for j, count := range counts {
			sums[j] += count.Load()
		}
	}
	line := ""
	for i, name := range names {
		line += `,"` + name + `":` + strconv.FormatUint(sums[i], 10)
	}
	return "{" + line[1:] + "}"
}
