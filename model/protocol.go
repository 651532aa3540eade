package model

import "tutti/model/units"

// Protocol is how a worker tells the next that data has arrived.
type Protocol int

// The protocols of NCCL, from the lowest latency to the highest bandwidth.
const (
	LL     Protocol = iota // a flag in each 8-byte store: 4 bytes of data, 4 of flag
	LL128                  // a flag in each 128-byte line: 120 bytes of data, 8 of flag
	Simple                 // whole slices, then a fence and a counter
)

var protocolNames = []string{"ll", "ll128", "simple"}

// String returns the lower-case name, as in "ll128".
func (p Protocol) String() string { return name(protocolNames, p) }

// ParseProtocol reads a name that [Protocol.String] writes; the error lists them.
func ParseProtocol(s string) (Protocol, error) {
	return parse[Protocol]("protocol", protocolNames, s)
}

// Protocols lists every protocol, in order.
func Protocols() []Protocol { return all[Protocol](protocolNames) }

// Wire returns the bytes that carry the given payload over a link, flags
// included: LL 50 % payload, LL128 120 of 128 bytes, Simple all.
func (p Protocol) Wire(payload units.Bytes) units.Bytes {
	switch p {
	case LL:
		return 2 * payload
	case LL128:
		return (payload*128 + 119) / 120
	default:
		return payload
	}
}
