// Package gpupool implements the resource trainyard_gpu_pool.
package gpupool
