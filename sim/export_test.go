package sim

// EveryLink has all links simulated, even those that never hold anything up.
func EveryLink(o Options) Options {
	o.everyLink = true
	return o
}
