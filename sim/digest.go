package sim

import "tutti/model/splitmix"

// digest stands for a sequence of numbers that were added; equal digests of
// different sequences are as unlikely as 1 in 2^64.
type digest uint64

func (d digest) add(n uint64) digest { return digest(splitmix.Mix(uint64(d) ^ splitmix.Mix(n))) }

// sum stands for a multiset of digests.
type sum uint64

func (s *sum) plus(d digest) { s.times(1, d) }

// times adds a digest so many times.
func (s *sum) times(n uint64, d digest) { *s += sum(n * splitmix.Mix(uint64(d))) }

// distinct returns how many different digests there are.
func distinct(list []digest) int {
	set := make(map[digest]struct{}, len(list))
	for _, d := range list {
		set[d] = struct{}{}
	}
	return len(set)
}

// numbered numbers digests in the order in which they come.
func numbered(list []digest) []int32 {
	numbers := make([]int32, len(list))
	known := map[digest]int32{}
	for i, d := range list {
		n, found := known[d]
		if !found {
			n = int32(len(known))
			known[d] = n
		}
		numbers[i] = n
	}
	return numbers
}
