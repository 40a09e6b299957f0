// Prompts that load key-value blocks from a drive, in Go: by table and by simulation.
//
//	hybridsim surrogate drive.toml --states fresh --sizes 64KiB --read-shares 1 --out drive.json
//	go run . drive.json fresh drive.toml
//
// Eight workers load one block of 64 KiB after the other. Prints the mean latency with the drive as
// a table, and with the drive itself through the C interface (`make capi`, pkg-config finds it).
// drive.toml has to prepare the drive as the state does.
package main

// #cgo pkg-config: hybridsim
// #include <hybridsim.h>
// #include <stdlib.h>
import "C"

import (
	"container/heap"
	"fmt"
	"log"
	"math/rand"
	"os"
	"unsafe"
)

const (
	block   = 65536
	workers = 8
	loads   = 5000
)

// queue has the times at which loads end, in nanoseconds.
type queue []float64

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i] < q[j] }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(at any)       { *q = append(*q, at.(float64)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	at := (*q)[last]
	*q = (*q)[:last]
	return at
}

// byTable returns the mean latency in microseconds.
func byTable(surrogate *Surrogate, random *rand.Rand) float64 {
	ends, sum := queue{}, 0.0
	load := func(now float64) {
		latency, err := surrogate.Latency("read", 1, block, workers)
		if err != nil {
			log.Fatal(err)
		}
		us := surrogate.Quantile(latency, random.Float64())
		sum += us
		heap.Push(&ends, now+1000*us)
	}
	for range workers {
		load(0)
	}
	for range loads - workers {
		load(heap.Pop(&ends).(float64))
	}
	return sum / loads
}

func check(status C.hybridsim_status) {
	if status > C.HYBRIDSIM_STATUS_NONE {
		log.Fatal(C.GoString(C.hybridsim_error()))
	}
}

// byDrive returns the mean latency in microseconds.
func byDrive(scenario string, random *rand.Rand) float64 {
	path := C.CString(scenario)
	defer C.free(unsafe.Pointer(path))
	var drive *C.hybridsim_session
	check(C.hybridsim_open_file(path, nil, &drive))
	defer C.hybridsim_close(drive)
	places := int64(C.hybridsim_capacity(drive)) / block
	began, sum := map[C.uint64_t]C.uint64_t{}, 0.0
	load := func(now C.uint64_t) {
		var number C.uint64_t
		request := C.hybridsim_request{at_ns: now, length: block, op: C.HYBRIDSIM_OP_READ}
		request.offset = C.uint64_t(random.Int63n(places) * block)
		check(C.hybridsim_submit(drive, &request, &number))
		began[number] = now
	}
	for range workers {
		load(0)
	}
	for ended := 0; ended < loads; ended++ {
		var completion C.hybridsim_completion
		check(C.hybridsim_next_completion(drive, &completion))
		sum += float64(completion.at_ns-began[completion.number]) / 1000
		delete(began, completion.number)
		if ended < loads-workers {
			load(completion.at_ns)
		}
	}
	return sum / loads
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: loop TABLES STATE SCENARIO")
	}
	surrogate, err := OpenSurrogate(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	random := rand.New(rand.NewSource(1))
	table, drive := byTable(surrogate, random), byDrive(os.Args[3], random)
	fmt.Printf("mean load: %.1f us by table, %.1f us by the drive\n", table, drive)
	fmt.Printf("difference %+.1f %%\n", 100*(table/drive-1))
}
