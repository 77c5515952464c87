package engine

// RecordData returns the data of records by their names.
func RecordData(records map[string]Record) map[string][]byte {
	data := make(map[string][]byte, len(records))
	for name, record := range records {
		data[name] = record.Data
	}
	return data
}
