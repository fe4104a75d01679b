package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"tacho"
	"tacho/internal/wav"
	"tacho/internal/wholefile"
)

// SoundOptions say which sounds of a dataset are used.
type SoundOptions struct {
	MinS, MaxS float64 // bounds of their length in seconds; a MaxS of 0 is none
}

// soundFormats are those whose length can be read.
const soundFormats = "WAV, FLAC and MP3"

// loadSound reads a sound from a file, or out of a data URL.
func loadSound(where string) (*tacho.Audio, error) {
	if !strings.HasPrefix(where, "data:") {
		path := strings.TrimPrefix(where, "file://")
		data, err := wholefile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("audio: %w", err)
		}
		return &tacho.Audio{Name: filepath.Base(path), Data: data}, nil
	}
	head, text, _ := strings.Cut(where, ",")
	format, isSound := strings.CutPrefix(head, "data:audio/")
	format, isBase64 := strings.CutSuffix(format, ";base64")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !isSound || !isBase64 {
		return nil, fmt.Errorf("audio: %.40q is no data URL of a sound in base64", where)
	}
	return &tacho.Audio{Name: "audio." + strings.TrimPrefix(format, "x-"), Data: data}, nil
}

// soundURL is a sound as loadSound reads it back.
func soundURL(a *tacho.Audio) string {
	return "data:audio/" + soundFormat(a) + ";base64," + base64.StdEncoding.EncodeToString(a.Data)
}

// soundFormat is the format of a sound, by its beginning or else by its name.
func soundFormat(a *tacho.Audio) string {
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

// soundSeconds is how long a sound is; 0 if its format does not tell it or is
// not known.
func soundSeconds(data []byte) float64 {
	switch {
	case wav.Is(data):
		return wav.Seconds(data)
	case bytes.HasPrefix(data, []byte("fLaC")):
		return flacSeconds(data)
	default:
		return mp3Seconds(data)
	}
}

// flacSeconds is in the first block of the file.
func flacSeconds(data []byte) float64 {
	const head, info = 8, 34
	if len(data) < head+info || data[4]&0x7f != 0 {
		return 0
	}
	// 20 bits of samples a second, 8 of channels and sample size, 36 of samples.
	v := binary.BigEndian.Uint64(data[head+10:])
	perSecond, samples := v>>44, v&(1<<36-1)
	if perSecond == 0 {
		return 0
	}
	return float64(samples) / float64(perSecond)
}

// Kilobits a second of layer III, by the index in a frame's header: of MPEG 1,
// and of 2 and 2.5. Samples a second of MPEG 1; the others halve and quarter it.
var (
	mp3Rates   = [2][15]int{{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}
	mp3Samples = [3]int{44_100, 48_000, 32_000}
)

// mp3Frame is the size of the frame at the beginning of data, and how many
// samples it holds of how many a second; 0 if there is none.
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

// mp3Seconds goes from frame to frame. A first one that tells about the others
// has no sound in it, and may say how much silence was put around the rest.
func mp3Seconds(data []byte) float64 {
	if len(data) > 10 && string(data[:3]) == "ID3" {
		size := int(data[6]&0x7f)<<21 | int(data[7]&0x7f)<<14 | int(data[8]&0x7f)<<7 | int(data[9]&0x7f)
		data = data[min(10+size, len(data)):]
	}
	sum, silence := 0.0, 0.0
	for first := true; ; first = false {
		size, samples, perSecond := mp3Frame(data)
		if size == 0 {
			return max(sum-silence, 0)
		}
		frame := data[:min(size, len(data))]
		data = data[len(frame):]
		if first && (bytes.Contains(frame, []byte("Xing")) || bytes.Contains(frame, []byte("Info"))) {
			silence = float64(mp3Silence(frame)) / float64(perSecond)
			continue
		}
		sum += float64(samples) / float64(perSecond)
	}
}

// mp3Silence is how many samples the encoder put before and behind the sound,
// as LAME and those after it write it down.
func mp3Silence(frame []byte) int {
	const place = 21 // behind the encoder's name: twice 12 bits
	at := max(bytes.Index(frame, []byte("LAME")), bytes.Index(frame, []byte("Lav")))
	if at < 0 || at+place+3 > len(frame) {
		return 0
	}
	b := frame[at+place:]
	return int(b[0])<<4 + int(b[1])>>4 + int(b[1]&0xf)<<8 + int(b[2])
}

// sampleRate is that of the sounds made here, as speech models take them.
const sampleRate = 16_000

// hiss is a WAV file of random samples, 16 bits of one channel; nil for no
// time.
func hiss(r *rand.Rand, ms int) *tacho.Audio {
	if ms <= 0 {
		return nil
	}
	samples := make([]int16, ms*sampleRate/1000)
	for i := range samples {
		samples[i] = int16(r.Uint32()) / 8 // not too loud
	}
	bytesOf := uint32(2 * len(samples))
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{
		36 + bytesOf, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(sampleRate), uint32(2 * sampleRate), uint16(2), uint16(16),
		[]byte("data"), bytesOf, samples,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // to memory, of fixed sizes: it cannot fail
	}
	return &tacho.Audio{Name: "audio.wav", Data: b.Bytes()}
}
