package host

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"

	"tutti/backend/number"
)

// available returns the bytes of memory that programs can still have, as Linux
// tells; elsewhere there is no limit.
func available() float64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return math.Inf(1)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kilobytes float64
		if n, _ := fmt.Sscanf(strings.TrimSpace(lines.Text()), "MemAvailable: %f kB", &kilobytes); n == 1 {
			return 1024 * kilobytes
		}
	}
	return math.Inf(1)
}

// pool keeps the memory of slots that are free. The one that was used last is
// handed out first, as it may still be in a cache; so far fewer than the
// connections have slots are in use, as a rule.
type pool struct {
	mu   sync.Mutex
	free [][]byte
}

// get returns memory of the given length.
func (p *pool) get(bytes int64) []byte {
	p.mu.Lock()
	for i := len(p.free) - 1; i >= 0; i-- {
		if m := p.free[i]; int64(cap(m)) >= bytes {
			p.free = append(p.free[:i], p.free[i+1:]...)
			p.mu.Unlock()
			return m[:bytes]
		}
	}
	p.mu.Unlock()
	return number.Memory(bytes)
}

func (p *pool) put(memory []byte) {
	p.mu.Lock()
	p.free = append(p.free, memory)
	p.mu.Unlock()
}
