import { expect, test } from 'vitest'
import { mostAudioTokens } from '../../../src/gateway/budgets/audio-tokens.ts'

const rest = Buffer.alloc(2_397)
const tag = (content: number) =>
  Buffer.concat([Buffer.from('ID3\x04\0\0\0\0'), Buffer.from([content >> 7, content & 0x7f]), Buffer.alloc(content)])

test.each<[string, string, Buffer, boolean]>([
  ['WAV', 'wav', Buffer.from('RIFF'), true],
  ['PCM', 'pcm16', Buffer.from([1, 2, 3]), true],
  ['MP3', 'mp3', Buffer.from([0xff, 0xfb, 0x90]), true],
  ['MP3 at a low rate', 'mp3', Buffer.from([0xff, 0xe3, 0x10]), true],
  ['MP3 after a tag', 'mp3', Buffer.concat([tag(130), Buffer.from([0xff, 0xf3, 0x10])]), true],
  ['FLAC', 'flac', Buffer.from('fLaC'), false],
  ['Ogg', 'ogg', Buffer.from('OggS'), false],
  ['FLAC stated as WAV', 'wav', Buffer.from('fLaC'), false],
  ['AAC stated as MP3', 'mp3', Buffer.from([0xff, 0xf1, 0x50]), false],
  ['AAC after a tag', 'mp3', Buffer.concat([tag(130), Buffer.from([0xff, 0xf9, 0x50])]), false],
  ['a tag that never ends', 'mp3', Buffer.from('ID3\x04\0\0\x7f\x7f\x7f\x7f', 'latin1'), false],
])('the size of %s limits its length if it is not compressed more where it is silent', (_, format, begin, isSteady) => {
  const data = Buffer.concat([begin, rest]).toString('base64')
  expect(mostAudioTokens(data, format)).toBe(isSteady ? Math.ceil(data.length / 32) : undefined)
})

test.each(['', 'A', '/', '//', 'SUQz'])('%j is no audio of a known length', (data) => {
  expect(mostAudioTokens(data, 'mp3')).toBeUndefined()
})
