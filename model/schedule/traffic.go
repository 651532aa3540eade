package schedule

// Traffic returns the elements that go over each connection, in the numbering of
// [Schedule.Connection]: what each writer puts in, flags and headers aside. It
// takes time in proportion to the steps.
func Traffic(s Schedule) []int64 {
	elements := make([]int64, s.Connections())
	for w := range s.Workers() {
		worker := s.Worker(w)
		for i := range worker.Steps {
			step := s.Step(w, i)
			for port := range step.Send.All() {
				_, count := step.Range(port)
				elements[worker.Out[port]] += count
			}
		}
	}
	return elements
}
