package topo

// Sharing says how a link, but for NVLinks, is shared by the items that are to
// cross it at a time.
type Sharing int

// The ways of sharing.
const (
	// Fair gives each an even share, as packets of many senders have it.
	Fair Sharing = iota
	// FIFO serves whole items in the order in which they come.
	FIFO
)

func (s Sharing) String() string { return [...]string{"fair", "fifo"}[s] }
