package sim

// EveryLink has all links simulated, even those that never hold anything up.
func EveryLink(o Options) Options {
	o.everyLink = true
	return o
}

// AnyGuess has classes guessed, however little that spares.
func AnyGuess(o Options) Options { o.anyGuess = true; return o }

// AnyShards has several cores share out even a few machines.
func AnyShards(o Options) Options { o.anyShards = true; return o }
