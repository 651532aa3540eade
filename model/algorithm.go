package model

// Algorithm is a way to carry out a collective.
type Algorithm int

// The algorithms that have a schedule. NVLS reduces and multicasts in the
// switch of one NVLink domain; NVLSTree joins such domains by a double binary
// tree over the network.
const (
	Ring Algorithm = iota
	Tree
	NVLS
	NVLSTree
)

var algorithmNames = []string{"ring", "tree", "nvls", "nvlstree"}

// String returns the lower-case name, as in "nvlstree".
func (a Algorithm) String() string { return name(algorithmNames, a) }

// ParseAlgorithm reads a name that [Algorithm.String] writes; the error lists them.
func ParseAlgorithm(s string) (Algorithm, error) {
	return parse[Algorithm]("algorithm", algorithmNames, s)
}

// Algorithms lists every algorithm, in order.
func Algorithms() []Algorithm { return all[Algorithm](algorithmNames) }

// Protocols lists the protocols that a runs over: the NVLS forms need whole
// fences (Simple), as multimem instructions carry no flags.
func (a Algorithm) Protocols() []Protocol {
	if a == NVLS || a == NVLSTree {
		return []Protocol{Simple}
	}
	return Protocols()
}
