package search

// speeds are the rates per channel, in GB/s, that the search tries, from the
// highest (NCCL 2.28.3, src/graph/search.cc, speedArray*): by the lowest compute
// capability, times ten, and by whether the network takes part.
func speeds(sm int, network bool) []float32 {
	switch {
	case sm >= 100 && network:
		return []float32{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case sm >= 100:
		return []float32{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18}
	case sm >= 90 && network:
		return []float32{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case sm >= 90:
		return []float32{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	case network:
		return []float32{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
	default:
		return []float32{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	}
}

// dropTo returns the index of the first speed, from the highest, that fits; the
// last where none does.
func dropTo(speeds []float32, fits func(speed float32) bool) int {
	for i, s := range speeds {
		if fits(s) {
			return i
		}
	}
	return len(speeds) - 1
}
