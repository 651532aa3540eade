package rows

// Call returns the row without what was found: two rows of one call on one
// machine and fabric are equal then.
func (r Row) Call() Row {
	if r.Why != nil {
		r.Machine += " on " + r.Why.Fabric
	}
	r.Time, r.Wrong, r.Why = 0, nil, nil
	return r
}

// Series returns what rows of one series share, which differ in size, time and
// what follows from these.
func (r Row) Series() Row {
	r = r.Call()
	r.Bytes, r.Channels, r.Case = 0, 0, Case{}
	return r
}
