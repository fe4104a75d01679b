package workload

import (
	"encoding/binary"
	"image"
	"math/rand/v2"
)

// framesPerSecond is the frame rate of videos, as in the reference.
const framesPerSecond = 30

// noiseVideo returns an MP4 file of random JPEG frames (Motion JPEG). Servers can decode
// this format, and writing it needs no codec.
func noiseVideo(r *rand.Rand, size image.Point, frames int) ([]byte, error) {
	pictures := make([][]byte, frames)
	for i := range pictures {
		var err error
		if pictures[i], err = noiseJPEG(r, size); err != nil {
			return nil, err
		}
	}
	return mp4(size, pictures), nil
}

// box returns an MP4 box: its length, its name and its contents.
func box(name string, parts ...[]byte) []byte {
	n := 8
	for _, p := range parts {
		n += len(p)
	}
	b := append(binary.BigEndian.AppendUint32(make([]byte, 0, n), uint32(n)), name...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// numbers encodes 32-bit numbers.
func numbers(list ...int) []byte {
	b := make([]byte, 0, 4*len(list))
	for _, n := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// Fixed-point numbers for the identity matrix.
const (
	one16 = 1 << 16
	one30 = 1 << 30
)

var identity = numbers(one16, 0, 0, 0, one16, 0, 0, 0, one30)

// mp4 returns a file with one video track. All frames are in one chunk at the end.
func mp4(size image.Point, pictures [][]byte) []byte {
	n := len(pictures)
	sizes := numbers(0, 0, n)
	for _, p := range pictures {
		sizes = append(sizes, numbers(len(p))...)
	}
	table := box("stbl",
		box("stsd", numbers(0, 1), sampleEntry(size)),
		box("stts", numbers(0, 1, n, 1)),    // n frames of one time unit each
		box("stsc", numbers(0, 1, 1, n, 1)), // from the first chunk on, n frames per chunk
		box("stsz", sizes),
		box("stco", numbers(0, 1, 0)), // offset of the chunk, set below
	)
	media := box("mdia",
		box("mdhd", numbers(0, 0, 0, framesPerSecond, n, 0x55c4<<16)), // language undetermined
		box("hdlr", numbers(0, 0), []byte("vide"), make([]byte, 13)),
		box("minf", box("vmhd", numbers(1, 0, 0)), box("dinf", box("dref", numbers(0, 1), box("url ", numbers(1)))), table),
	)
	head := box("tkhd", numbers(3, 0, 0, 1, 0, n, 0, 0, 0, 0), identity, numbers(size.X<<16, size.Y<<16))
	movie := box("moov",
		box("mvhd", numbers(0, 0, 0, framesPerSecond, n, one16, 0x0100<<16, 0, 0), identity, make([]byte, 24), numbers(2)),
		box("trak", head, media),
	)
	file := box("ftyp", []byte("isom"), numbers(0x200), []byte("isomiso2mp41"))
	// The last number of the header is the offset of the frames, which follow the header
	// and the 8 bytes of their box header.
	binary.BigEndian.PutUint32(movie[len(movie)-4:], uint32(len(file)+len(movie)+8))
	return append(append(file, movie...), box("mdat", pictures...)...)
}

// sampleEntry describes a frame as a JPEG of this size.
func sampleEntry(size image.Point) []byte {
	const (
		isJPEG  = 0x6c // MPEG-4 object type
		isVideo = 0x11
	)
	decoder := []byte{4, 13, isJPEG, isVideo, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	stream := append([]byte{3, byte(3 + len(decoder) + 3), 0, 1, 0}, append(decoder, 6, 1, 2)...)
	b := append(make([]byte, 6), 0, 1) // data reference: this file
	b = append(b, make([]byte, 16)...)
	b = binary.BigEndian.AppendUint16(b, uint16(size.X))
	b = binary.BigEndian.AppendUint16(b, uint16(size.Y))
	b = append(b, numbers(72<<16, 72<<16, 0)...) // dots per inch
	b = append(b, 0, 1)                          // one frame per sample
	b = append(b, make([]byte, 32)...)           // compressor name
	b = append(b, 0, 24, 0xff, 0xff)             // colour depth
	return box("mp4v", b, box("esds", numbers(0), stream))
}
