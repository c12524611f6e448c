package main

import "sync"

// outbox holds the frames that wait for one reader, bounded in bytes. What was taken waits no more.
type outbox struct {
	limit  int
	mutex  sync.Mutex
	filled sync.Cond
	frames [][]byte
	bytes  int
	closed bool
}

func newOutbox(limit int) *outbox {
	o := &outbox{limit: limit}
	o.filled.L = &o.mutex
	return o
}

// add returns false, and takes nothing from then on, when more than the limit would wait: the reader is slow. One frame
// may always wait. Any goroutine.
func (o *outbox) add(frame []byte) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.closed {
		return true
	}
	if o.bytes > 0 && o.bytes+len(frame) > o.limit {
		o.closed, o.frames = true, nil
		o.filled.Signal()
		return false
	}
	o.bytes += len(frame)
	o.frames = append(o.frames, frame)
	if len(o.frames) == 1 {
		o.filled.Signal()
	}
	return true
}

// close: nothing more is taken; what waits can still be.
func (o *outbox) close() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.closed = true
	o.filled.Signal()
}

// take waits until there is something, and returns all of it; nothing once it is closed and empty. The memory of spare
// is used for what comes next.
func (o *outbox) take(spare [][]byte) [][]byte {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for len(o.frames) == 0 && !o.closed {
		o.filled.Wait()
	}
	taken := o.frames
	o.frames, o.bytes = spare[:0], 0
	return taken
}
