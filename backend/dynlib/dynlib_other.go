//go:build !linux

package dynlib

import (
	"errors"
	"runtime"
)

var errSystem = errors.New("tutti opens GPU libraries on Linux only, this is " + runtime.GOOS)

func open(string) (uintptr, error) { return 0, errSystem }

func lookup(uintptr, string) (uintptr, error) { return 0, errSystem }

func register(any, uintptr) {}
