/**
 * Notes with NestJS, TypeORM and the decorator of @dataui/crud, as its README has them, on SQLite in memory. Decorators are called as functions,
 * because this file runs without a compiler. It is copied to where its packages are. The port is PORT.
 */
import 'reflect-metadata';
import { Crud } from '@dataui/crud';
import { TypeOrmCrudService } from '@dataui/crud-typeorm';
import { Controller, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

class Note {}
Entity()(Note);
for (const [name, type, ...decorators] of [
  ['id', Number, PrimaryGeneratedColumn(), IsOptional()],
  ['title', String, Column('varchar'), IsString()],
  ['done', Boolean, Column('boolean', { default: false }), IsOptional(), IsBoolean()],
]) {
  Reflect.defineMetadata('design:type', type, Note.prototype, name);
  for (const decorate of decorators) decorate(Note.prototype, name);
}

class NotesService extends TypeOrmCrudService {}
InjectRepository(Note)(NotesService, undefined, 0);
Reflect.defineMetadata('design:paramtypes', [Object], NotesService);
Injectable()(NotesService);

class NotesController {
  constructor(service) {
    this.service = service;
  }
}
Reflect.defineMetadata('design:paramtypes', [NotesService], NotesController);
Crud({ model: { type: Note } })(NotesController);
Controller('notes')(NotesController);

class AppModule {}
Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'sqljs', entities: [Note], synchronize: true }),
    TypeOrmModule.forFeature([Note]),
  ],
  providers: [NotesService],
  controllers: [NotesController],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['error'] });
await app.listen(process.env.PORT, '127.0.0.1');
