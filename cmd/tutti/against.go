package main

import (
	"fmt"
	"slices"
	"strings"
)

// settable are the flags that --against can set.
var settable = []string{
	"machine", "fabric", "nodes", "gpus", "net-rate", "without", "oversubscription", "routing", "sharing",
	"profile", "algo", "proto", "channels", "fault",
	"straggler", "jitter", "seed", "seeds", "nic", "queue-pairs", "gdr",
}

// parts are the keys that follow in the values of flags that are pairs themselves.
var parts = map[string][]string{"fault": {"rate", "at"}, "straggler": {"delay", "slow"}}

// assignment is a flag and what it is set to.
type assignment struct{ flag, value string }

// assignments reads FLAG=VALUE,…; a value may be a list.
func assignments(text string) (set []assignment, err error) {
	for _, part := range strings.Split(text, ",") {
		flag, value, found := strings.Cut(part, "=")
		switch {
		case found && slices.ContainsFunc(set, func(a assignment) bool { return a.flag == flag }):
			return nil, fmt.Errorf("%s stands there twice", flag)
		case found && slices.Contains(settable, flag):
			set = append(set, assignment{flag, value})
		case len(set) > 0 && slices.Contains(parts[set[len(set)-1].flag], flag):
			set[len(set)-1].value += "," + part
		case found || len(set) == 0:
			return nil, fmt.Errorf("%q is no setting: want FLAG=VALUE with one of %s", part, strings.Join(settable, ", "))
		default:
			set[len(set)-1].value += "," + part
		}
	}
	return set, nil
}
