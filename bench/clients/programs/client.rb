# Ruby's Net::HTTP with its defaults, one kept connection a server: a request a line in, its response a line out (line-exchange.ts has the form).
require 'net/http'

$stdout.sync = true
connections = {}

first_event = lambda do |answer|
  body = +''
  answer.read_body do |chunk|
    body << chunk
    throw :seen, body if body.include?("\ndata:")
  end
  body
end

$stdin.each_line do |line|
  method, url, content, *fields = line.chomp.split("\t", -1)
  uri = URI(url)
  http = connections[uri.port] ||= Net::HTTP.start(uri.host, uri.port)
  headers = fields.to_h { |field| field.split(': ', 2) }
  request = Net::HTTPGenericRequest.new(method, content != '', true, uri, headers)
  request.body = content.unpack1('m') if content != ''
  status = body = nil
  answered = {}
  body = catch(:seen) do
    read = nil
    http.request(request) do |answer|
      status = answer.code
      answer.each_header { |name, value| answered[name] = value }
      read = headers['Accept'] == 'text/event-stream' ? first_event.call(answer) : answer.read_body
    end
    read
  end
  puts [status, [body.to_s].pack('m0'), *answered.map { |name, value| "#{name}: #{value}" }].join("\t")
rescue StandardError => e
  connections.delete(uri.port)
  puts "error\t#{e.message.gsub(/\s+/, ' ')}"
end
