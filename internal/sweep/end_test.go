package sweep

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// failedWith returns an attempt that ended with an exit code.
func failedWith(code int, why string) domain.Observed {
	return domain.Observed{
		State: domain.StateFailed, ExitCode: &code, LastError: why, StartedAt: new(at(-60)), FinishedAt: new(at(-1)),
	}
}

var completed = domain.Observed{
	State: domain.StateCompleted, ExitCode: new(0), StartedAt: new(at(-60)), FinishedAt: new(at(-1)),
}

func TestEnded(t *testing.T) {
	const oom = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
	retrying := func(most int) domain.Retry { return domain.Retry{MaxAttempts: &most, Delay: seconds(10)} }
	for name, test := range map[string]struct {
		change   func(s *domain.Sweep)
		run      domain.Run // before this attempt
		observed domain.Observed
		log      []string
		want     domain.Run
		says     []string
		begins   string // what the reason begins with
	}{
		"success": {
			nil, domain.Run{}, completed, []string{"accuracy=0.5", "accuracy=0.75", "done"},
			domain.Run{State: domain.RunSucceeded, ExitCode: new(0), Value: new(0.75)}, nil, "",
		},
		"success without a value": {
			nil, domain.Run{}, completed, []string{"done"}, domain.Run{State: domain.RunSucceeded, ExitCode: new(0)},
			nil, "",
		},
		"success after failures": {
			nil, domain.Run{Failures: 2, OutOfMemory: 1, Reason: "it failed"}, completed, nil,
			domain.Run{State: domain.RunSucceeded, ExitCode: new(0), Failures: 2, OutOfMemory: 1}, nil, "",
		},
		"success though memory ran out once": {
			nil, domain.Run{}, completed, []string{oom}, domain.Run{State: domain.RunSucceeded, ExitCode: new(0)}, nil,
			"",
		},

		"failure": {
			nil, domain.Run{}, failedWith(3, "exit code 3"), []string{"accuracy=0.1"},
			domain.Run{State: domain.RunFailed, ExitCode: new(3), Failures: 1, Value: new(0.1)}, nil, "exit code 3",
		},
		"failure that says nothing": {
			nil, domain.Run{}, domain.Observed{State: domain.StateFailed}, nil,
			domain.Run{State: domain.RunFailed, Failures: 1}, nil, "it failed",
		},
		"failure to be tried again": {
			func(s *domain.Sweep) { s.Retry = retrying(3) }, domain.Run{}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunQueued, ExitCode: new(3), Failures: 1, NotBefore: new(at(10))}, nil,
			"exit code 3",
		},
		"the second failure": {
			func(s *domain.Sweep) { s.Retry = retrying(3) }, domain.Run{Failures: 1}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunQueued, ExitCode: new(3), Failures: 2, NotBefore: new(at(20))}, nil,
			"exit code 3",
		},
		"the last failure": {
			func(s *domain.Sweep) { s.Retry = retrying(3) }, domain.Run{Failures: 2}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(3), Failures: 3}, []string{"3 failed attempts"},
			"exit code 3",
		},
		"the tenth failure of as many as it takes": {
			func(s *domain.Sweep) { s.Retry = retrying(0) }, domain.Run{Failures: 9}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunQueued, ExitCode: new(3), Failures: 10, NotBefore: new(at(300))}, nil,
			"exit code 3",
		},
		"failure without a delay": {
			func(s *domain.Sweep) { s.Retry.MaxAttempts = new(2) }, domain.Run{}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunQueued, ExitCode: new(3), Failures: 1, NotBefore: new(at(1))}, nil,
			"exit code 3",
		},
		"program not found": {
			func(s *domain.Sweep) { s.Retry = retrying(3) }, domain.Run{}, failedWith(127, "exit code 127"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(127), Failures: 1}, nil, "exit code 127",
		},
		"own final exit code": {
			func(s *domain.Sweep) {
				s.Retry, s.ExitCodes = retrying(3), &domain.ExitCodeRule{Final: domain.ExitCodes{"2-3"}}
			},
			domain.Run{}, failedWith(3, "exit code 3"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(3), Failures: 1}, nil, "exit code 3",
		},
		"no final exit codes": {
			func(s *domain.Sweep) { s.Retry, s.ExitCodes = retrying(3), &domain.ExitCodeRule{} }, domain.Run{},
			failedWith(127, "exit code 127"), nil,
			domain.Run{State: domain.RunQueued, ExitCode: new(127), Failures: 1, NotBefore: new(at(10))}, nil,
			"exit code 127",
		},
		"not started": {
			func(s *domain.Sweep) { s.Retry = retrying(2) }, domain.Run{},
			domain.Observed{State: domain.StateFailed, Unstarted: true, LastError: "no such image"}, nil,
			domain.Run{State: domain.RunQueued, Failures: 1, NotBefore: new(at(10))}, nil, "no such image",
		},
		"killed for its memory": {
			func(s *domain.Sweep) { s.Resources.MemoryMiB = 2300 }, domain.Run{},
			failedWith(137, "exit code 137 (signal 9)"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(137), Failures: 1},
			[]string{"more than 2300 MiB", "raise resources.memory_mib"}, "exit code 137",
		},
		"killed by its limit": {
			func(s *domain.Sweep) { s.Resources.MemoryMiB, s.Resources.Limits.MemoryMiB = 2300, 4000 }, domain.Run{},
			failedWith(137, "exit code 137 (signal 9)"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(137), Failures: 1}, []string{"more than 4000 MiB"},
			"exit code 137",
		},
		"killed without a limit": {
			nil, domain.Run{}, failedWith(137, "exit code 137 (signal 9)"), nil,
			domain.Run{State: domain.RunFailed, ExitCode: new(137), Failures: 1}, nil, "exit code 137 (signal 9)",
		},
		"stopped by somebody": {
			nil, domain.Run{Failures: 1},
			domain.Observed{State: domain.StateStopped, ExitCode: new(143), FinishedAt: new(at(-1))}, []string{oom},
			domain.Run{State: domain.RunQueued, ExitCode: new(143), Failures: 1}, nil, "stopped by someone else",
		},

		"out of GPU memory": {
			nil, domain.Run{}, failedWith(1, "exit code 1"), []string{oom, "  File train.py"},
			domain.Run{
				State: domain.RunQueued, ExitCode: new(1), OutOfMemory: 1,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			},
			[]string{"beside 36 other runs", oom}, "out of GPU memory",
		},
		"out of GPU memory uses up no attempt": {
			func(s *domain.Sweep) { s.Retry = retrying(2) }, domain.Run{Failures: 1, OutOfMemory: 3},
			failedWith(1, "exit code 1"), []string{oom},
			domain.Run{
				State: domain.RunQueued, ExitCode: new(1), Failures: 1, OutOfMemory: 4,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			},
			nil, "out of GPU memory",
		},
		"out of GPU memory with a final exit code": {
			nil, domain.Run{}, failedWith(127, "exit code 127"), []string{oom},
			domain.Run{
				State: domain.RunQueued, ExitCode: new(127), OutOfMemory: 1,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			}, nil, "out of GPU memory",
		},
		"out of GPU memory for good": {
			nil, domain.Run{OutOfMemory: 4}, failedWith(1, "exit code 1"), []string{oom},
			domain.Run{
				State: domain.RunOutOfMemory, ExitCode: new(1), OutOfMemory: 5,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			},
			[]string{"in 5 attempts", "beside 36", "raise gpus.memory_mib", oom}, "out of GPU memory",
		},
		"out of GPU memory for good at once": {
			func(s *domain.Sweep) { s.Retry.OutOfMemory = new(0) }, domain.Run{}, failedWith(1, "exit code 1"),
			[]string{oom},
			domain.Run{
				State: domain.RunOutOfMemory, ExitCode: new(1), OutOfMemory: 1,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			}, nil, "out of GPU memory",
		},
		"by its own pattern": {
			func(s *domain.Sweep) { s.Retry.Patterns = []string{`^kaputt`} }, domain.Run{},
			failedWith(1, "exit code 1"), []string{"kaputt: the card"},
			domain.Run{
				State: domain.RunQueued, ExitCode: new(1), OutOfMemory: 1,
				RanOut: &domain.RanOut{At: at(-1), GPUs: "GPU-a", Beside: 36},
			},
			[]string{"kaputt: the card"}, "out of GPU memory",
		},
		"without GPUs it is a failure": {
			func(s *domain.Sweep) { s.GPUs = nil }, domain.Run{}, failedWith(1, "exit code 1"), []string{oom},
			domain.Run{State: domain.RunFailed, ExitCode: new(1), Failures: 1}, nil, "exit code 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onGPUs(sweepOf("lr", 1), 1199)
			s.Objective = &domain.Objective{Pattern: `accuracy=([0-9.]+)`}
			if test.change != nil {
				test.change(&s)
			}
			run := Start(documentOf(s), s.Run("r0"), domain.Run{}, domain.Assignment{Host: "gpu1", GPUs: "GPU-a"}, 1,
				at(-50))
			run.Failures, run.OutOfMemory, run.Reason = test.run.Failures, test.run.OutOfMemory, test.run.Reason
			run.PeakMemoryMiB = new(int64(100))
			got := Ended(s, run, test.observed, test.log, 36, noon)
			if got.Active() || got.Needs != nil || got.Attempts != 1 || got.Seal != run.Seal ||
				got.Revision != run.Revision || got.PeakMemoryMiB == nil {
				t.Errorf("it has become %+v", got)
			}
			if test.observed.FinishedAt != nil && !got.FinishedAt.Equal(*test.observed.FinishedAt) &&
				got.State != domain.RunQueued || got.FinishedAt == nil || got.StartedAt == nil {
				t.Errorf("it went from %v to %v", got.StartedAt, got.FinishedAt)
			}
			ignored := cmpopts.IgnoreFields(domain.Run{}, "Revision", "Seal", "Attempts", "Batch", "Assignment",
				"StartedAt", "FinishedAt", "PeakMemoryMiB", "Reason")
			if diff := cmp.Diff(test.want, got, ignored); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
			if (test.begins == "") != (got.Reason == "") || !strings.HasPrefix(got.Reason, test.begins) {
				t.Errorf("the reason is %q, want %q", got.Reason, test.begins)
			}
			says(t, "the reason", got.Reason, test.says...)
		})
	}
}

// TestOutOfMemory has lines as programs write them, in full where that matters.
func TestOutOfMemory(t *testing.T) {
	for line, want := range map[string]bool{
		// PyTorch up to 1.12, from 1.13, from 2.5, and its libraries.
		"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 44.48 GiB total capacity; 41.30 GiB already allocated; 1.02 GiB free; 42.00 GiB reserved in total by PyTorch)":                                      true,
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 44.48 GiB of which 19.06 MiB is free. Including non-PyTorch memory, this process has 1.12 GiB memory in use.": true,
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 44.48 GiB of which 19.06 MiB is free. Process 4711 has 43.30 GiB memory in use.":                                  true,
		"RuntimeError: CUDA error: out of memory":                                                  true,
		"RuntimeError: CUDA driver error: out of memory":                                           true,
		"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": true,
		"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED":                                     true,
		"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda error. Last error: Cuda failure 'out of memory'": true,
		// TensorFlow 1 and 2.
		"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[256,64,112,112] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]": true,
		"2026-11-24 10:00:00.000000: I external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:980] failed to allocate 41.03GiB (44056576000 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory":                      true,
		"tensorflow.python.framework.errors_impl.InternalError: CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory":                                                                                      true,
		"2026-11-24 10:00:00.000000: E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED":                                                                              true,
		"2026-11-24 10:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:456] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op Conv2D":                     true,
		// JAX, old and new.
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.":                true,
		"RuntimeError: Resource exhausted: Out of memory allocating 4294967296 bytes.":                                                       true,
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0": true,
		"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.":                                         true,
		// Others.
		"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 4,294,967,296 bytes (allocated so far: 1,073,741,824 bytes).":                                                    true,
		"MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/conda/include/rmm/mr/device/cuda_memory_resource.hpp:70: cudaErrorMemoryAllocation out of memory":            true,
		"numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY":                                                                          true,
		"[LightGBM] [Fatal] [CUDA] out of memory /src/LightGBM/include/LightGBM/cuda/cuda_utils.hpp 73":                                                                               true,
		"xgboost.core.XGBoostError: Check failed: e == cudaSuccess: Memory allocation error on worker 0: bad_alloc: cudaErrorMemoryAllocation: out of memory":                         true,
		"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory":                                                            true,
		"terminate called after throwing an instance of 'thrust::THRUST_200302_860_NS::system::system_error'\twhat():  parallel_for failed: cudaErrorMemoryAllocation: out of memory": true,

		// The host's memory, other errors, and lines that are not errors.
		"RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000 bytes. Error code 12": false,
		"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64":                             false,
		"MemoryError": false,
		"[ 4711.0] Out of memory: Killed process 4711 (python3) total-vm:12345kB":                                                                                                                                                   false,
		"ResourceExhaustedError: OOM when allocating tensor with shape[10000,10000] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu":                                                             false,
		"2026-11-24 10:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:246] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB. The caller indicates that this is not a failure, but may mean that": false,
		"grpc.RpcError: RESOURCE_EXHAUSTED: Received message larger than max (4194305 vs. 4194304)":                                                                                                                                 false,
		"RuntimeError: CUDA error: device-side assert triggered":                                                                                                                                                                    false,
		"RuntimeError: CUDA error: an illegal memory access was encountered":                                                                                                                                                        false,
		"RuntimeError: No CUDA GPUs are available":                                                                                                                                                                                  false,
		"the room is out": false,
		"":                false,
	} {
		if _, got := outOfMemoryLine(domain.Sweep{}, []string{"epoch 3", line, "the end"}); got != want {
			t.Errorf("%q means that memory ran out: %v", line, got)
		}
	}
}

// TestLongReasons checks that a long line or error is shortened, as it is stored with each run.
func TestLongReasons(t *testing.T) {
	for _, line := range []string{"CUDA out of memory" +
		strings.Repeat("ä", 10_000), "CUDA out of memory." + strings.Repeat("ä", 10_000)} {
		found, _ := outOfMemoryLine(domain.Sweep{}, []string{line})
		for _, got := range []string{found, failure(domain.Sweep{}, domain.Observed{LastError: line})} {
			if len(got) > longestReason+len("…") || !utf8.ValidString(got) ||
				!strings.HasPrefix(got, "CUDA out of memory") {
				t.Errorf("of %d bytes there are left %d: %q", len(line), len(got), got)
			}
		}
	}
}

func TestValue(t *testing.T) {
	for name, test := range map[string]struct {
		pattern string
		log     []string
		want    *float64
	}{
		"none":               {`acc=(\S+)`, nil, nil},
		"the last":           {`acc=(\S+)`, []string{"acc=0.1", "acc=0.2 acc=0.3", "end"}, new(0.2)},
		"negative":           {`loss (\S+)`, []string{"loss -1.5e-3"}, new(-0.0015)},
		"integer":            {`n=(\d+)`, []string{"n=12"}, new(12.0)},
		"diverged":           {`loss=(\S+)`, []string{"loss=0.5", "loss=nan"}, nil},
		"infinite":           {`loss=(\S+)`, []string{"loss=0.5", "loss=-inf"}, nil},
		"no number":          {`loss=(\S+)`, []string{"loss=high"}, nil},
		"the group is empty": {`loss=(\d+)?`, []string{"loss=high"}, nil},
		"no group":           {`loss=\d+`, []string{"loss=1"}, nil},
		"no pattern":         {`(`, []string{"("}, nil},
	} {
		if diff := cmp.Diff(test.want, valueIn(&domain.Objective{Pattern: test.pattern}, test.log)); diff != "" {
			t.Errorf("%s: value (-want +got):\n%s", name, diff)
		}
	}
	if got := valueIn(nil, []string{"acc=1"}); got != nil {
		t.Errorf("without an objective it is %v", *got)
	}
}

func TestBackOff(t *testing.T) {
	for _, test := range []struct {
		delay    *domain.Duration
		failures int
		want     time.Duration
	}{
		{nil, 1, time.Second}, {nil, 9, 256 * time.Second}, {seconds(0), 5, 0}, {seconds(1), 1, time.Second},
		{seconds(1), 2, 2 * time.Second}, {seconds(1), 5, 16 * time.Second},
		{seconds(1), 9, 256 * time.Second}, {seconds(1), 10, longestBackOff}, {seconds(1), 1_000_000, longestBackOff},
		{seconds(3600), 1, time.Hour}, {seconds(3600), 3, time.Hour},
	} {
		if got := backOff(domain.Retry{Delay: test.delay}, test.failures); got != test.want {
			t.Errorf("after %d failures with a delay of %v it takes %s, want %s", test.failures, test.delay, got,
				test.want)
		}
	}
}

func TestStart(t *testing.T) {
	s := onGPUs(sweepOf("lr", 1), 1199)
	doc := documentOf(s)
	doc.Revision, doc.MinRun = 5, 3
	place := domain.Assignment{Host: "gpu1", Port: 20000, GPUs: "GPU-a"}
	out := &domain.RanOut{At: at(-5), GPUs: "GPU-b", Beside: 3}
	before := domain.Run{
		State: domain.RunQueued, Revision: 4, Seal: Seal(s.Run("r0")), Attempts: 3, Failures: 1, OutOfMemory: 2,
		Batch: 7, Assignment: &domain.Assignment{Host: "gpu0"},
		StartedAt: new(at(-9)), FinishedAt: new(at(-5)), ExitCode: new(1), NotBefore: new(at(-2)), RanOut: out,
		PeakMemoryMiB: new(int64(1)), Value: new(1.0), Reason: "x",
	}
	first := domain.Run{
		State: domain.RunRunning, Revision: 5, Seal: Seal(s.Run("r0")), Attempts: 1, Batch: 8, Assignment: &place,
		StartedAt: new(noon),
		Needs:     &domain.RunNeeds{GPUs: s.GPUs},
	}
	again := first
	again.Attempts, again.Failures, again.OutOfMemory, again.RanOut = 4, 1, 2, out
	other := before
	other.Seal = "other"
	old := before
	old.Revision = 2
	for name, test := range map[string]struct{ run, want domain.Run }{
		"the first time": {domain.Run{}, first}, "again": {before, again}, "with another environment": {other, first},
		"as another program": {old, first},
	} {
		if diff := cmp.Diff(test.want, Start(doc, s.Run("r0"), test.run, place, 8, noon)); diff != "" {
			t.Errorf("%s: run (-want +got):\n%s", name, diff)
		}
	}
}

// TestLost checks that a lost run waits again with everything it has, as it was not at fault.
func TestLost(t *testing.T) {
	s := sweepOf("lr", 1)
	run := Start(documentOf(s), s.Run("r0"), domain.Run{}, domain.Assignment{Host: "a"}, 1, noon)
	run.Failures, run.OutOfMemory = 1, 2
	lost := Lost(run, "its host is gone", at(5))
	if lost.State != domain.RunQueued || lost.Attempts != 1 || lost.Failures != 1 || lost.OutOfMemory != 2 ||
		lost.Active() || lost.NotBefore != nil || lost.Reason != "its host is gone" {
		t.Errorf("it has become %+v", lost)
	}
	if lost.FinishedAt == nil || !lost.FinishedAt.Equal(at(5)) {
		t.Errorf("it ended at %v", lost.FinishedAt)
	}
}

// TestPausedStays: a run that was paused while it ran does not start again by itself, whatever happens to its member.
func TestPausedStays(t *testing.T) {
	s := sweepOf("lr", 1)
	own, doc := s.Run("r0"), documentOf(s)
	run := Start(doc, own, domain.Run{}, domain.Assignment{Host: "a"}, 1, noon)
	run.State = domain.RunPaused
	stopped := domain.Observed{State: domain.StateStopped}
	for name, after := range map[string]domain.Run{
		"its member vanished": Lost(run, "its member vanished", at(5)),
		"its sweep changed":   Outdated(doc, own, run, at(5)),
		"somebody stopped it": Ended(s, run, stopped, nil, 0, at(5)),
	} {
		if after.State != domain.RunPaused || after.Active() || Stale(doc, own, after) {
			t.Errorf("%s: it has become %+v", name, after)
		}
		resumed := Wished(doc, own, after, domain.WishResume, "ada", at(9))
		if resumed.State != domain.RunQueued || resumed.Active() {
			t.Errorf("%s: once resumed, it has become %+v", name, resumed)
		}
	}
}

func TestCancelled(t *testing.T) {
	s := sweepOf("lr", 1)
	own := s.Run("r0")
	doc := documentOf(s)
	doc.Revision, doc.MinRun, doc.MinFailed = 3, 2, 3
	on := Start(doc, own, domain.Run{}, domain.Assignment{Host: "a"}, 1, noon)
	before := on // started before a trigger asked to retry failed runs
	before.Revision = 2
	waits := domain.Run{
		State: domain.RunQueued, Revision: 2, Seal: Seal(own), Attempts: 1, Failures: 1, FinishedAt: new(at(-9)),
		NotBefore: new(at(9)),
	}
	for name, test := range map[string]struct {
		run      domain.Run
		attempts int
		finished *time.Time
	}{
		"one of which nothing is known": {domain.Run{}, 0, nil},
		"one that waits":                {waits, 1, new(at(-9))},
		"one that is on":                {on, 1, new(at(5))},
		"one that was started before":   {before, 1, new(at(5))},
		"one that is to start anew": {
			domain.Run{State: domain.RunFailed, Revision: 1, Seal: Seal(own), Attempts: 4}, 0, nil,
		},
	} {
		got := Cancelled(doc, own, test.run, "too many have failed", at(5))
		if got.State != domain.RunCancelled || got.Reason != "too many have failed" || got.NotBefore != nil ||
			got.Active() || got.Attempts != test.attempts {
			t.Errorf("%s has become %+v", name, got)
		}
		if diff := cmp.Diff(test.finished, got.FinishedAt); diff != "" {
			t.Errorf("%s ended (-want +got):\n%s", name, diff)
		}
		if Stale(doc, own, got) {
			t.Errorf("%s starts anew: %+v", name, got)
		}
	}
}

func TestFailing(t *testing.T) {
	states := func(states ...domain.RunState) map[string]domain.Run {
		runs := map[string]domain.Run{}
		for i, state := range states {
			runs[string(rune('a'+i))] = domain.Run{State: state, Seal: sealOfEnv(nil)}
		}
		return runs
	}
	two := states(domain.RunFailed, domain.RunOutOfMemory, domain.RunSucceeded, domain.RunCancelled, domain.RunQueued,
		domain.RunRunning)
	anew := states(domain.RunFailed, domain.RunOutOfMemory)
	for key, run := range anew {
		run.Seal = sealOfEnv(map[string]string{"LR": "of another one"})
		anew[key] = run
	}
	for name, test := range map[string]struct {
		rule *domain.SweepOnFailure
		runs map[string]domain.Run
		says string
		all  bool
	}{
		"no rule": {nil, two, "", false},
		"not yet": {&domain.SweepOnFailure{After: 3}, two, "", false},
		"stop":    {&domain.SweepOnFailure{After: 2}, two, "2 runs have failed, and on_failure.after is 2", true},
		"explicitly": {
			&domain.SweepOnFailure{After: 1, Then: domain.SweepStop}, two,
			"2 runs have failed, and on_failure.after is 1", true,
		},
		"drain": {
			&domain.SweepOnFailure{After: 2, Then: domain.SweepDrain}, two,
			"2 runs have failed, and on_failure.after is 2", false,
		},
		"anew":        {&domain.SweepOnFailure{After: 1}, anew, "", false},
		"none failed": {&domain.SweepOnFailure{After: 1}, states(domain.RunSucceeded, domain.RunCancelled), "", false},
	} {
		if why, all := Failing(domain.SweepDocument{}, domain.Sweep{OnFailure: test.rule},
			test.runs); why != test.says || all != test.all {
			t.Errorf("%s: %q, all: %v; want %q, %v", name, why, all, test.says, test.all)
		}
	}
}
