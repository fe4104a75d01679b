package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/wav"
)

// AudioLimits select the audio of a dataset.
type AudioLimits struct {
	MinS, MaxS float64 // limits of the length in seconds; MaxS 0 means unlimited
}

// audioFormats are the formats whose length can be read.
const audioFormats = "WAV, FLAC and MP3"

// loadAudio reads audio from a file or a data URL.
func loadAudio(where string) (*tacho.Audio, error) {
	if !strings.HasPrefix(where, "data:") {
		path := strings.TrimPrefix(where, "file://")
		data, err := atomicfile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("audio: %w", err)
		}
		return &tacho.Audio{Name: filepath.Base(path), Data: data}, nil
	}
	head, text, _ := strings.Cut(where, ",")
	format, isAudio := strings.CutPrefix(head, "data:audio/")
	format, isBase64 := strings.CutSuffix(format, ";base64")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !isAudio || !isBase64 {
		return nil, fmt.Errorf("audio: %.40q is not a base64 data URL of audio", where)
	}
	return &tacho.Audio{Name: "audio." + strings.TrimPrefix(format, "x-"), Data: data}, nil
}

// audioURL returns audio as a data URL for loadAudio.
func audioURL(a *tacho.Audio) string {
	return "data:audio/" + audioFormat(a) + ";base64," + base64.StdEncoding.EncodeToString(a.Data)
}

// audioFormat returns the format of audio, by its first bytes or else by its name.
func audioFormat(a *tacho.Audio) string {
	switch d := a.Data; {
	case wav.Is(d):
		return "wav"
	case bytes.HasPrefix(d, []byte("fLaC")):
		return "flac"
	case bytes.HasPrefix(d, []byte("OggS")):
		return "ogg"
	case bytes.HasPrefix(d, []byte("ID3")):
		return "mp3"
	}
	if ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(a.Name)), "."); ext != "" {
		return ext
	}
	return "wav"
}

// audioSeconds returns the length of audio, or 0 if it is unknown.
func audioSeconds(data []byte) float64 {
	switch {
	case wav.Is(data):
		return wav.Seconds(data)
	case bytes.HasPrefix(data, []byte("fLaC")):
		return flacSeconds(data)
	default:
		return mp3Seconds(data)
	}
}

// flacSeconds reads the length from the first metadata block.
func flacSeconds(data []byte) float64 {
	const head, info = 8, 34
	if len(data) < head+info || data[4]&0x7f != 0 {
		return 0
	}
	// 20 bits sample rate, 8 bits channels and sample size, 36 bits number of samples.
	v := binary.BigEndian.Uint64(data[head+10:])
	perSecond, samples := v>>44, v&(1<<36-1)
	if perSecond == 0 {
		return 0
	}
	return float64(samples) / float64(perSecond)
}

// mp3Rates are the bit rates of layer III in kbit/s by header index: MPEG 1, then MPEG 2
// and 2.5. mp3Samples are the sample rates of MPEG 1; MPEG 2 has half of them, MPEG 2.5 a
// quarter.
var (
	mp3Rates   = [2][15]int{{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}
	mp3Samples = [3]int{44_100, 48_000, 32_000}
)

// mp3Frame returns the size of the frame at the start of data, its number of samples and
// its sample rate. It returns zeros if there is no frame.
func mp3Frame(data []byte) (size, samples, perSecond int) {
	if len(data) < 4 || data[0] != 0xff || data[1]&0xe0 != 0xe0 || data[1]>>1&3 != 1 {
		return 0, 0, 0
	}
	version, rate, sampling, padding := data[1]>>3&3, data[2]>>4, data[2]>>2&3, int(data[2]>>1&1)
	if version == 1 || rate == 0 || rate == 15 || sampling == 3 {
		return 0, 0, 0
	}
	perSecond, samples = mp3Samples[sampling], 1152
	table := 0
	if version != 3 {
		perSecond, samples, table = perSecond/2, 576, 1
	}
	if version == 0 {
		perSecond /= 2
	}
	return samples/8*mp3Rates[table][rate]*1000/perSecond + padding, samples, perSecond
}

// mp3Seconds adds up all frames. A first frame with metadata (Xing, Info) contains no
// audio, but may contain the amount of padding.
func mp3Seconds(data []byte) float64 {
	if len(data) > 10 && string(data[:3]) == "ID3" {
		size := int(data[6]&0x7f)<<21 | int(data[7]&0x7f)<<14 | int(data[8]&0x7f)<<7 | int(data[9]&0x7f)
		data = data[min(10+size, len(data)):]
	}
	sum, padding := 0.0, 0.0
	for first := true; ; first = false {
		size, samples, perSecond := mp3Frame(data)
		if size == 0 {
			return max(sum-padding, 0)
		}
		frame := data[:min(size, len(data))]
		data = data[len(frame):]
		if first && (bytes.Contains(frame, []byte("Xing")) || bytes.Contains(frame, []byte("Info"))) {
			padding = float64(mp3Padding(frame)) / float64(perSecond)
			continue
		}
		sum += float64(samples) / float64(perSecond)
	}
}

// mp3Padding returns the number of padding samples before and after the audio, as written
// by LAME and compatible encoders.
func mp3Padding(frame []byte) int {
	const place = 21 // offset after the encoder's name: twice 12 bits
	at := max(bytes.Index(frame, []byte("LAME")), bytes.Index(frame, []byte("Lav")))
	if at < 0 || at+place+3 > len(frame) {
		return 0
	}
	b := frame[at+place:]
	return int(b[0])<<4 + int(b[1])>>4 + int(b[1]&0xf)<<8 + int(b[2])
}

// sampleRate is the sample rate of generated audio in Hz, the usual input of speech
// models.
const sampleRate = 16_000

// noiseWAV returns a WAV file of random samples, 16 bits, one channel, or nil if ms is 0.
func noiseWAV(r *rand.Rand, ms int) *tacho.Audio {
	if ms <= 0 {
		return nil
	}
	samples := make([]int16, ms*sampleRate/1000)
	for i := range samples {
		samples[i] = int16(r.Uint32()) / 8 // reduce the volume
	}
	bytesOf := uint32(2 * len(samples))
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{
		36 + bytesOf, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(sampleRate), uint32(2 * sampleRate), uint16(2), uint16(16),
		[]byte("data"), bytesOf, samples,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // fixed-size writes to memory cannot fail
	}
	return &tacho.Audio{Name: "audio.wav", Data: b.Bytes()}
}
