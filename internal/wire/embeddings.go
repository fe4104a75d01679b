package wire

// EmbeddingsPath is the path of OpenAI's embeddings protocol.
const EmbeddingsPath = "/v1/embeddings"
