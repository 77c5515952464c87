package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// modelFile is the name of the saved model in the model folder.
const modelFile = "model.json"

// savedModel is a trained network. Weights are row-major: one row per unit of the layer.
type savedModel struct {
	Layers        [3]int    `json:"layers"`
	Accuracy      float64   `json:"accuracy"`
	HiddenWeights []float64 `json:"hidden_weights"`
	HiddenBias    []float64 `json:"hidden_bias"`
	OutputWeights []float64 `json:"output_weights"`
	OutputBias    []float64 `json:"output_bias"`
}

// saveModel writes the model into dir atomically, and returns its path.
func saveModel(dir string, parameters []float64, accuracy float64) (string, error) {
	net := networkOf(parameters)
	document, err := json.Marshal(savedModel{
		Layers:        [3]int{pixelCount, hiddenCount, classCount},
		Accuracy:      accuracy,
		HiddenWeights: net.hiddenWeights,
		HiddenBias:    net.hiddenBias,
		OutputWeights: net.outputWeights,
		OutputBias:    net.outputBias,
	})
	if err != nil {
		return "", fmt.Errorf("cannot save the model: %w", err)
	}
	path := filepath.Join(dir, modelFile)
	if err := writeWhole(path, document); err != nil {
		return "", fmt.Errorf("cannot save the model: %w", err)
	}
	return path, nil
}

// writeWhole replaces the file at path atomically, and creates its folder if needed.
func writeWhole(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if _, err := file.Write(content); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
