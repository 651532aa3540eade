package driver

import (
	"fmt"
	"unsafe"
)

// Error is a call that the driver refused.
type Error struct {
	Call string
	GPU  int // -1 where the call is of no GPU
	Code int
	// Name and Text are the driver's: "CUDA_ERROR_OUT_OF_MEMORY", "out of memory".
	Name, Text string
}

// advice says what to do about an error, by its code (CUresult of cuda.h).
var advice = map[int]string{
	2:   "use smaller sizes, or free memory of other programs (nvidia-smi lists them)",
	3:   "the driver is shutting down or its kernel module was replaced: start again",
	100: "no GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES",
	209: "the embedded kernels need compute capability 9.0 or later (H100, H200)",
	217: "the GPUs cannot reach each other's memory: use GPUs of one NVLink domain, or NCCL",
	218: "the driver cannot compile the embedded PTX: want a driver for CUDA 12.3 or later",
	222: "the driver is older than the embedded PTX: want a driver for CUDA 12.3 or later",
	700: "a kernel touched memory that is not there, and the context is lost: start again, with compute-sanitizer to find it",
	702: "a kernel was stopped by the watchdog: use a GPU without a display",
	719: "a kernel failed and the context is lost: start again",
	802: "the fabric manager has not set up NVLink yet: wait, or ask the administrator",
	803: "driver and kernel module differ: reboot after the driver's update",
	999: "unknown to the driver: see the kernel log (dmesg) for Xid messages",
}

func (e *Error) Error() string {
	where := ""
	if e.GPU >= 0 {
		where = fmt.Sprintf(" on GPU %d", e.GPU)
	}
	text := fmt.Sprintf("%s%s: %s (%s, %d)", e.Call, where, e.Text, e.Name, e.Code)
	if a := advice[e.Code]; a != "" {
		text += ": " + a
	}
	return text
}

// check makes an error of a result other than success.
func check(call string, gpu int, r result) error {
	if r == 0 {
		return nil
	}
	e := &Error{Call: call, GPU: gpu, Code: int(r), Name: "unknown", Text: "unknown error"}
	var text *byte
	if cu.GetErrorName(r, &text) == 0 {
		e.Name = goString(text)
	}
	if cu.GetErrorString(r, &text) == 0 {
		e.Text = goString(text)
	}
	return e
}

// goString copies a C string.
func goString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
