package dynlib

import "github.com/ebitengine/purego"

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

func lookup(handle uintptr, symbol string) (uintptr, error) { return purego.Dlsym(handle, symbol) }

func register(function any, address uintptr) { purego.RegisterFunc(function, address) }
