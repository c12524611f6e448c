package netdyno

import (
	"sync"
	"syscall"
)

const (
	longestShort = 64 << 10 // from here on pages of their own are worth the system calls
	leastPages   = 512 << 10
	mostSpare    = 8 << 20
)

// pendingBytes are those of a message that is not complete yet. They take memory as they arrive, whatever length was
// announced, and what is long lies in pages of its own, which need no garbage collection: a heap would take twice as
// much, and keep it when the message is long gone. Pages that were not written to take no memory.
type pendingBytes struct {
	short []byte
	pages []byte
	used  int // of the pages
}

func (p *pendingBytes) len() int { return len(p.view()) }

// view is all of it; valid until the next change.
func (p *pendingBytes) view() []byte {
	if p.pages == nil {
		return p.short
	}
	return p.pages[:p.used]
}

func (p *pendingBytes) append(bytes []byte) {
	size := p.len() + len(bytes)
	if (p.pages == nil && size <= longestShort) || !p.makeRoom(size) {
		p.short = append(p.short, bytes...)
		return
	}
	p.used += copy(p.pages[p.used:], bytes)
}

// makeRoom is false where the system has no more mappings; then the heap must do.
func (p *pendingBytes) makeRoom(size int) bool {
	if size <= len(p.pages) {
		return true
	}
	wanted := leastPages
	for wanted < 2*size {
		wanted *= 2
	}
	pages := takePages(wanted)
	before := p.view()
	if pages == nil {
		p.short = append(p.short[:0], before...)
		givePages(p.pages)
		p.pages = nil
		return false
	}
	p.used = copy(pages, before)
	givePages(p.pages)
	p.pages, p.short = pages, p.short[:0]
	return true
}

// drop takes so many bytes off the front. What is left is of one read at most, as messages are taken when they are
// complete.
func (p *pendingBytes) drop(size int) {
	if p.pages == nil {
		p.short = p.short[:copy(p.short, p.short[size:])]
		return
	}
	p.short = append(p.short[:0], p.view()[size:]...)
	givePages(p.pages)
	p.pages, p.used = nil, 0
}

func (p *pendingBytes) clear() { p.drop(p.len()) }

// sparePages are kept for the next long messages of any connection.
var sparePages struct {
	sync.Mutex
	list [][]byte
	size int
}

// takePages returns at least so many bytes, whatever is in them; nil where there are none.
func takePages(size int) []byte {
	sparePages.Lock()
	for i := len(sparePages.list) - 1; i >= 0; i-- {
		if pages := sparePages.list[i]; len(pages) >= size {
			last := len(sparePages.list) - 1
			sparePages.list[i] = sparePages.list[last]
			sparePages.list = sparePages.list[:last]
			sparePages.size -= len(pages)
			sparePages.Unlock()
			return pages
		}
	}
	sparePages.Unlock()
	pages, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil
	}
	return pages
}

func givePages(pages []byte) {
	if pages == nil {
		return
	}
	sparePages.Lock()
	keep := sparePages.size+len(pages) <= mostSpare
	if keep {
		sparePages.list = append(sparePages.list, pages)
		sparePages.size += len(pages)
	}
	sparePages.Unlock()
	if !keep {
		_ = syscall.Munmap(pages)
	}
}
