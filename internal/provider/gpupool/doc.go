// Package gpupool is the resource trainyard_gpu_pool.
package gpupool
